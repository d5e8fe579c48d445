/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USER_KILL_H
#define LODGE_PROJECT_USER_KILL_H

#include "engine/engine.h"

struct kill_result {
	bool killed;
	char session[STORE_ID], sandbox[STORE_ID]; /* sandbox "" if it was hibernated */
	char project[STORE_ID];
};
struct kill_result_list {
	struct kill_result *items; /* owned */
	size_t count, killed, failed;
	size_t projects; /* working copies among them */
};
void kill_result_list_fini(struct kill_result_list *l);
/* Deletes every session of the user, however it was created; the user has no active project
 * afterwards. Continues after a failure. */
int user_kill_sandboxes(struct engine *e, const struct caller *caller, const char *user,
			struct kill_result_list *ret, struct err *err);

#endif
