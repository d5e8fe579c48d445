/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USER_KILL_H
#define LODGE_PROJECT_USER_KILL_H

#include "engine/engine.h"

struct kill_result {
	bool killed;
	char user[STORE_USER];
	char session[STORE_ID], sandbox[STORE_ID];
	char project[STORE_ID];
};
struct kill_result_list {
	struct kill_result *items; /* owned */
	size_t count, killed, failed;
	size_t projects; /* working copies among them */
};
void kill_result_list_fini(struct kill_result_list *l);
/* Kills every running sandbox of the user, however it was created: those that user_info.active
 * counts. Their sessions are destroyed, and the next caller with one of their keys is told of the
 * loss. Sessions without a sandbox stay. Continues after a failure. */
int user_kill_sandboxes(struct engine *e, const struct caller *caller, const char *user,
			struct kill_result_list *ret, struct err *err);
/* The same for every user of the tenant. */
int user_kill_all_sandboxes(struct engine *e, const struct caller *caller,
			    struct kill_result_list *ret, struct err *err);

#endif
