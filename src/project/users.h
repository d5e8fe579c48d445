/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USERS_H
#define LODGE_PROJECT_USERS_H

#include "engine/engine.h"

struct user_info {
	struct store_user user;
	unsigned active; /* running sandboxes */
	bool has_session; /* the active one: */
	struct store_session session;
	char project_name[STORE_TEXT]; /* of the session's project */
};
void user_info_fini(struct user_info *i);
/* The sessions of a user that user_info.active counts, and user_kill_sandboxes() kills. */
struct store_session_filter user_sessions_filter(const char *tenant, const char *user);
bool user_counts_session(const struct store_session *s);
/* NULL: unchanged. */
int user_set(struct engine *e, const struct caller *caller, const char *user, const char *name,
	     const char *email, struct err *err);
/* For a user that has sessions but no record, only the id is set. */
int user_get(struct engine *e, const struct caller *caller, const char *user, struct user_info *ret,
	     struct err *err);

/* Inside WITH_STORE(): loads the user's record, or returns a new one that is not stored yet. */
int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err);
/* Creates the user's record if it does not exist. */
int user_ensure(struct engine *e, const struct caller *caller, const char *user, struct err *err);
/* Clears the active project and fragment. Creates no record. */
int user_clear_location(struct engine *e, const struct caller *caller, const char *user,
			struct err *err);

#endif
