/* SPDX-License-Identifier: Apache-2.0 */
/* Projects from inside, for the files that make up project/project.h. */
#ifndef LODGE_PROJECT_INTERNAL_H
#define LODGE_PROJECT_INTERNAL_H

#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"

/* ---- who may what -------------------------------------------------------------------------- */

enum project_need { PROJECT_VIEW, PROJECT_SAVE, PROJECT_DELETE };
/* The project, if the user may do this with it. ret may be NULL. */
int project_access(struct engine *e, const struct caller *who, const char *user,
		   const char *project, enum project_need need, struct store_project *ret,
		   struct err *err);
/* Inside DB(): the user's role in the team, 0 if there is none, -1. */
int team_role_of(struct store *st, const char *tenant, const char *team, const char *user,
		 struct err *err);
/* Inside DB(): makes the user OWNER of a team that has no members and no project. */
int team_found(struct store *st, const char *tenant, const char *team, const char *user,
	       struct err *err);
/* Inside DB(): what is known of the user, or a fresh record that is not written yet. */
int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err);
/* Makes the user if nobody knows them. */
int user_touch(struct engine *e, const struct caller *who, const char *user, struct err *err);
/* Where the user is from now on; both "" for nowhere. One that nobody knows is left unknown. */
int user_leave(struct engine *e, const struct caller *who, const char *user, struct err *err);

/* ---- order --------------------------------------------------------------------------------- */

/* What changes where a user is happens one after the other, in the order in which it was asked:
 * the last one wins. A turn (turn_take) does not keep an order. */
struct place {
	struct place *next;
	struct engine *engine;
	char tenant[STORE_NAME], user[STORE_USER];
};
void line_join(struct place *p, struct engine *e, const struct caller *who, const char *user);
/* The same for a call from outside: ERR_UNAVAILABLE if too many of this user wait. */
int line_enter(struct place *p, struct engine *e, const struct caller *who, const char *user,
	       struct err *err);
void line_leave(struct place *p);
DEFINE_AUTO(struct place *, line_leave);

/* Before this many bytes of files come into memory; waits while there are enough of others. Nobody
 * joins a line in there, and what a guest could hold up has a deadline. *is_in says whether it
 * counts: begin with false. */
enum { HEAVY_BYTES = 1 << 20 };
void heavy_enter(bool *is_in, uint64_t bytes);
void heavy_leave(bool *is_in);

/* ---- files of a fragment ------------------------------------------------------------------- */

/* The fragment, which must be one of this project. */
int fragment_find(struct engine *e, const struct caller *who, const char *project,
		  const char *fragment, struct store_fragment *ret, struct err *err);
int fragment_load(struct engine *e, const struct caller *who, const char *fragment,
		  struct store_file_list *ret, struct err *err);

int fragment_parse_files(const char *json, size_t len, struct store_file_list *ret,
			 struct err *err);
int fragment_take_files(struct json_t *map, struct store_file_list *ret, struct err *err);
/* Takes "a//b" for "a/b", puts them in order (a directory's files stand together), and refuses what
 * cannot be unpacked. */
int fragment_check_files(struct store_file_list *l, struct err *err);

enum { RESTORE_STEP = 1000 }; /* files; after so many it is told */
struct restore_watch {
	void (*fn)(void *arg, unsigned done); /* files that have been taken */
	void *arg;
};
/* Writes the files into the session's working directory, and looks whether they are there. */
int files_restore(struct engine *e, const struct caller *who, const char *session,
		  const struct store_file_list *files, const struct restore_watch *watch,
		  struct err *err);
/* The other way: what lies in the working directory now. 1: more than a fragment may hold; *ret is
 * untouched then. *is_heavy is for heavy_leave() when the files are not needed any more, also on
 * failure. */
int files_collect(struct engine *e, const struct caller *who, const char *session,
		  struct store_file_list *ret, unsigned *ret_skipped, bool *is_heavy,
		  struct err *err);

/* ---- keys ---------------------------------------------------------------------------------- */

/* The session a user is on, and the user's working copy of a project. */
struct store_binding key_of_user(const char *user);
int key_of_copy(const char *user, const char *project, struct store_binding *ret, struct err *err);
/* The session's id, or "". */
int key_leads(struct engine *e, const struct caller *who, const struct store_binding *key,
	      char ret[STORE_ID], struct err *err);

/* What a session that a switch makes has for metadata until the user is on it. One with this mark
 * and without keys belongs to no switch that is still under way. */
#define SWITCH_MARK "lodge:switch"
#define SWITCH_PENDING "{\"" SWITCH_MARK "\":\"pending\"}"
#define SWITCH_REPLACED "{\"" SWITCH_MARK "\":\"replaced\"}"

/* The rest is for who stands first in the user's line. */

struct swapped {
	char previous[STORE_ID]; /* session the user was on, "" if none or the same */
	char replaced[STORE_ID]; /* working copy that has no key any more */
	char sandbox[STORE_ID]; /* of the session, as it is now */
};
/* The user is on this session from now on. It took place when this returns 0, and did not when it
 * returns -1. */
int switch_swap(struct engine *e, const struct caller *who, const char *user, const char *session,
		struct swapped *ret, struct err *err);
/* Brings to an end what an earlier switch of this user left half done. */
int switch_tidy(struct engine *e, const struct caller *who, const char *user, struct err *err);

#endif
