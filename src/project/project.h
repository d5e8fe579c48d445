/* SPDX-License-Identifier: Apache-2.0 */
/* Projects: one sandbox per user that moves between bodies of work. What every surface calls.
 *
 * A project belongs to its owner and, if it names one, to a team. A fragment is one saved set of a
 * project's files. Where a user works in a project is that user's working copy: a session of its
 * own, with what was not saved; the user is on one of them at a time.
 *
 * `user` is the end user who asks, `who` the application in whose name. A user nobody knows is made
 * when something is first changed for them. Calls block, from any thread; what comes out through
 * `ret` is untouched on failure.
 *
 *   ERR_NOT_FOUND    "Project not found": there is none, or none for this user;
 *                    "Fragment not found: F"
 *   ERR_DENIED       the user is in the project's team, but may not do this
 *   ERR_CONFLICT     "Fragment F does not belong to project P"; there already
 *   ERR_INVALID      the sentence names the field, or the path of a file
 *   ERR_LIMIT        with sys EFBIG: more files or bytes than a fragment may have; a quota; the
 * disk
 *
 * and what engine/engine.h says. */
#ifndef LODGE_PROJECT_PROJECT_H
#define LODGE_PROJECT_PROJECT_H

#include "base/json.h"
#include "engine/engine.h"
#include "engine/start_progress.h"

enum {
	FRAGMENT_BYTES_MAX = 64 << 20, /* of all files together, and of the JSON they come in */
	FRAGMENT_PATH_MAX = 1024, /* with its NUL */
};

/* ---- projects ------------------------------------------------------------------------------ */

struct project_opts {
	const char *id; /* NULL: one is made */
	const char *name;
	const char *team; /* NULL: none. A team nobody heard of: the user becomes its OWNER */
};
int project_add(struct engine *e, const struct caller *who, const char *user,
		const struct project_opts *want, struct store_project *ret, struct err *err);
/* For the owner and the team, any role. */
int project_get(struct engine *e, const struct caller *who, const char *user, const char *project,
		struct store_project *ret, struct err *err);
int project_list(struct engine *e, const struct caller *who, const char *user,
		 struct store_page page, struct store_project_list *ret, struct err *err);
/* With its fragments and everybody's working copies. For the owner, and OWNER and ADMIN of the
 * team. */
int project_remove(struct engine *e, const struct caller *who, const char *user,
		   const char *project, struct err *err);
/* Its owner. For the application: nobody's access is checked. */
int project_owner(struct engine *e, const struct caller *who, const char *project,
		  char ret[STORE_USER], struct err *err);

/* ---- teams --------------------------------------------------------------------------------- */

enum team_role { /* numbers are in the store */
		 TEAM_OWNER = 1,
		 TEAM_ADMIN,
		 TEAM_MEMBER,
		 TEAM_VIEWER,
};
const char *team_role_name(enum team_role role); /* "OWNER"; "?" for no role */
/* 0 if there is no role of this name. */
enum team_role team_role_find(const char *name);

/* `by` is the end user who asks: an OWNER, or an ADMIN where no OWNER is made, changed or removed.
 * NULL: the application itself, which may do anything. */
int team_put(struct engine *e, const struct caller *who, const char *by, const char *team,
	     const char *user, enum team_role role, struct err *err);
/* Anybody may leave. ret_was, the role it was, may be NULL. */
int team_remove(struct engine *e, const struct caller *who, const char *by, const char *team,
		const char *user, enum team_role *ret_was, struct err *err);
/* By user. For everybody in it; others see a team without members. */
int team_list(struct engine *e, const struct caller *who, const char *by, const char *team,
	      struct store_member_list *ret, struct err *err);

/* ---- fragments ----------------------------------------------------------------------------- */

/* One of files or map, snapshot and from_sandbox. */
struct fragment_opts {
	const char *id; /* NULL: one is made */
	const char *title; /* NULL: none */
	/* A JSON object, path -> text; "__BASE64__..." and "data:...;base64,..." are bytes. A path
	 * is relative, without "." and "..", and no file's path is another's directory. */
	const char *files;
	size_t files_len;
	struct json_t *map; /* instead of files: the same, as jansson has read it; borrowed */
	/* A snapshot of one of the user's own sessions. It stays the caller's: it cannot be removed
	 * while the fragment names it. */
	const char *snapshot;
	/* What is in the working directory of the user's working copy now, which is resumed if it
	 * sleeps: its regular files, read one after the other. Files have no modes here. What is
	 * more than a fragment can hold becomes a snapshot instead, of the whole sandbox. */
	bool from_sandbox;
};
struct fragment_add_result {
	struct store_fragment fragment;
	unsigned skipped; /* from_sandbox: links, and names that are no text, which were left out */
};
/* Not for VIEWERs. */
int fragment_add(struct engine *e, const struct caller *who, const char *user, const char *project,
		 const struct fragment_opts *want, struct fragment_add_result *ret,
		 struct err *err);
/* Newest first. */
int fragment_list(struct engine *e, const struct caller *who, const char *user, const char *project,
		  struct store_page page, struct store_fragment_list *ret, struct err *err);
/* ret_files may be NULL; it is for store_file_list_fini(). */
int fragment_get(struct engine *e, const struct caller *who, const char *user, const char *project,
		 const char *fragment, struct store_fragment *ret,
		 struct store_file_list *ret_files, struct err *err);
/* For those who may remove the project. Working copies made from it stay. */
int fragment_remove(struct engine *e, const struct caller *who, const char *user,
		    const char *project, const char *fragment, struct err *err);
/* As fragment_want.files: what is no text (control characters are none), or could be taken for
 * something else, is base64. */
void fragment_files_to_json(struct json_out *j, const char *key,
			    const struct store_file_list *files);

/* ---- switching ----------------------------------------------------------------------------- */

struct switch_opts {
	const char *user, *project;
	const char *fragment; /* NULL: the user's working copy; without one the latest fragment */
	const char *template; /* of a new sandbox; NULL: "host" */
	const struct template *over; /* what differs from it; may be NULL */
	int64_t idle_timeout_ms, max_lifetime_ms, wait_ms; /* as in struct session_opts */
	/* How far it has come, also every 1,000 files; may be NULL. In the caller's thread. What
	 * was refused before anything was touched is not told. */
	progress_fn *on_progress;
	void *progress_arg;
};
struct switch_result {
	char session[STORE_ID], sandbox[STORE_ID];
	char project[STORE_ID], fragment[STORE_ID]; /* where the user is now; fragment may be "" */
	char previous[STORE_ID]; /* session the user was on, if another */
	enum session_outcome outcome;
	unsigned restored_files; /* written by this switch: of a working copy none */
	bool has_restored_files; /* a working copy, or a fragment that is not empty */
	bool state_lost; /* the working copy's files were not there any more */
	struct store_cause cause; /* why, or why it had to be resumed */
};
/* Access, fragment and paths are checked before anything is touched; then everything is made ready,
 * and the user is moved at last. Whatever fails before that leaves the user where they are, with
 * all that runs there. A named fragment gives exactly its files, in place of the working copy. The
 * sandbox the user leaves is hibernated, as the working copy of its project. Switches of one user
 * take turns in the order in which they were asked.
 *
 * For a moment there are two sandboxes: a quota of one would never let a user move. */
int switch_user(struct engine *e, const struct caller *who, const struct switch_opts *want,
		struct switch_result *ret, struct err *err);
int switch_to_fragment(struct engine *e, const struct caller *who, const char *user,
		       const char *project, const char *fragment, struct switch_result *ret,
		       struct err *err);
int switch_to_project(struct engine *e, const struct caller *who, const char *user,
		      const char *project, struct switch_result *ret, struct err *err);

struct active_fragment {
	char project[STORE_ID], fragment[STORE_ID];
	bool has_fragment; /* it is still there: */
	struct store_fragment record;
};
/* 1 and where the user is; 0: nowhere. */
int user_active_fragment(struct engine *e, const struct caller *who, const char *user,
			 struct active_fragment *ret, struct err *err);

/* ---- users --------------------------------------------------------------------------------- */

struct user_info {
	struct store_user user;
	unsigned active; /* sandboxes that live */
	bool has_session; /* the one the user is on: */
	struct store_session session;
	char project_name[STORE_TEXT]; /* of the session's project */
};
void user_info_fini(struct user_info *i);
/* What is NULL stays. */
int user_set(struct engine *e, const struct caller *who, const char *user, const char *name,
	     const char *email, struct err *err);
/* Who has sessions but was never named has an id and nothing else. */
int user_get(struct engine *e, const struct caller *who, const char *user, struct user_info *ret,
	     struct err *err);

struct user_info_list {
	struct user_info *items; /* owned */
	size_t count;
	int64_t next; /* cursor of the next page, 0: none */
};
void user_info_list_fini(struct user_info_list *l);
int user_list(struct engine *e, const struct caller *who, struct store_page page,
	      struct user_info_list *ret, struct err *err);

/* ---- ending -------------------------------------------------------------------------------- */

struct kill_result {
	bool killed;
	char session[STORE_ID], sandbox[STORE_ID]; /* sandbox "" if it slept */
	char project[STORE_ID];
};
/* The session the user is on, with its files; they are nowhere afterwards. One that is on nothing
 * is success with killed false. */
int user_kill_active_sandbox(struct engine *e, const struct caller *who, const char *user,
			     struct kill_result *ret, struct err *err);

struct kill_result_list {
	struct kill_result *items; /* owned */
	size_t count, killed, failed;
	size_t projects; /* working copies among them */
};
void kill_result_list_fini(struct kill_result_list *l);
/* Every session of the user, however it was made. One failure does not stop the rest. */
int user_kill_sandboxes(struct engine *e, const struct caller *who, const char *user,
			struct kill_result_list *ret, struct err *err);
/* The same of every user. Sessions that belong to no user stay. */
int user_kill_all_sandboxes(struct engine *e, const struct caller *who,
			    struct kill_result_list *ret, struct err *err);

/* After a start: finishes or undoes the switches that were under way when the last engine ended. */
int switch_recover(struct engine *e, struct err *err);

#endif
