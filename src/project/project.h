/* SPDX-License-Identifier: Apache-2.0 */
/* Projects: each user has one active sandbox and switches it between projects.
 *
 * A project belongs to its owner and, if it names one, to a team. A fragment is one saved set of a
 * project's files. A user works on a project in a working copy: a session of that user and that
 * project, which keeps unsaved files. One working copy of a user is active at a time.
 *
 * `user` is the end user, `who` the application that calls on the user's behalf. A user record is
 * created on the first change for that user. Calls block and are thread-safe; on failure what `ret`
 * points to is unchanged.
 *
 *   ERR_NOT_FOUND    "Project not found": it does not exist, or this user has no access to it;
 *                    "Fragment not found: F"
 *   ERR_DENIED       the user is in the project's team, but lacks the right
 *   ERR_CONFLICT     "Fragment F does not belong to project P"; the id already exists
 *   ERR_INVALID      the message names the field, or the path of a file
 *   ERR_LIMIT        with sys EFBIG: more files or bytes than a fragment may have; a quota; a full
 *                    disk
 *
 * engine/engine.h lists the other errors. */
#ifndef LODGE_PROJECT_PROJECT_H
#define LODGE_PROJECT_PROJECT_H

#include "base/json.h"
#include "engine/engine.h"
#include "sandbox/template/template.h"
#include "engine/start_progress.h"

enum {
	FRAGMENT_BYTES_MAX = 64 << 20, /* of all files together, and of the JSON they come in */
	FRAGMENT_PATH_MAX = 1024, /* with its NUL */
};

/* ---- projects ---------------------------------------------------------------------------- */

struct project_opts {
	const char *id; /* NULL: generate one */
	const char *name;
	const char *team; /* NULL: none. The user becomes OWNER of a new team. */
};
int project_add(struct engine *e, const struct caller *caller, const char *user,
		const struct project_opts *opts, struct store_project *ret, struct err *err);
/* Allowed for the owner and every member of the team. */
int project_get(struct engine *e, const struct caller *caller, const char *user,
		const char *project, struct store_project *ret, struct err *err);
int project_list(struct engine *e, const struct caller *caller, const char *user,
		 struct store_page page, struct store_project_list *ret, struct err *err);
/* Deletes the project, its fragments and the working copies of all users. Allowed for the owner,
 * and for OWNER and ADMIN of the team. */
int project_remove(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, struct err *err);

/* ---- teams ------------------------------------------------------------------------------- */

enum team_role { /* stored in the database */
		 TEAM_OWNER = 1,
		 TEAM_ADMIN,
		 TEAM_MEMBER,
		 TEAM_VIEWER,
};
const char *team_role_name(enum team_role role); /* "OWNER"; "?" if invalid */
/* 0: no such role. */
enum team_role team_role_find(const char *name);

/* `by` is the calling end user: an OWNER, or an ADMIN unless an OWNER is added, changed or removed.
 * NULL: the application itself, which has all rights. */
int team_put(struct engine *e, const struct caller *caller, const char *by, const char *team,
	     const char *user, enum team_role role, struct err *err);
/* Every member may remove themselves. ret_was, the former role, may be NULL. */
int team_remove(struct engine *e, const struct caller *caller, const char *by, const char *team,
		const char *user, enum team_role *ret_was, struct err *err);
/* Sorted by user. Allowed for members; for others the list is empty. */
int team_list(struct engine *e, const struct caller *caller, const char *by, const char *team,
	      struct store_member_list *ret, struct err *err);

/* ---- fragments --------------------------------------------------------------------------- */

/* Exactly one of files, map, snapshot and from_sandbox is set. */
struct fragment_opts {
	const char *id; /* NULL: generate one */
	const char *title; /* NULL: none */
	/* A JSON object, path -> text; "__BASE64__..." and "data:...;base64,..." are bytes. A path
	 * is relative, without "." and "..", and cannot be both a file and a directory. */
	const char *files;
	size_t files_len;
	struct json_t *map; /* the same as `files`, already parsed; borrowed */
	/* A snapshot of one of the user's own sessions. The caller keeps it, but cannot delete it
	 * while the fragment refers to it. */
	const char *snapshot;
	/* The regular files in the working directory of the user's working copy, without their
	 * modes. The working copy is resumed if it is hibernated. If the files exceed what a
	 * fragment can hold, the fragment refers to a snapshot of the whole sandbox instead. */
	bool from_sandbox;
};
struct fragment_add_result {
	struct store_fragment fragment;
	unsigned skipped; /* from_sandbox: links and names that are not UTF-8 */
};
/* Not allowed for VIEWER. */
int fragment_add(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const struct fragment_opts *opts,
		 struct fragment_add_result *ret, struct err *err);
/* Newest first. */
int fragment_list(struct engine *e, const struct caller *caller, const char *user,
		  const char *project, struct store_page page, struct store_fragment_list *ret,
		  struct err *err);
/* ret_files may be NULL; free it with store_file_list_fini(). */
int fragment_get(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const char *fragment, struct store_fragment *ret,
		 struct store_file_list *ret_files, struct err *err);
/* Needs the right to delete the project. Working copies created from the fragment stay. */
int fragment_remove(struct engine *e, const struct caller *caller, const char *user,
		    const char *project, const char *fragment, struct err *err);
/* As fragment_opts.files: base64 if the content is not UTF-8, has control characters, or would be
 * read back as base64. */
void fragment_files_to_json(struct json_out *j, const char *key,
			    const struct store_file_list *files);

/* ---- users ------------------------------------------------------------------------------- */

struct user_info {
	struct store_user user;
	unsigned active; /* running sandboxes */
	bool has_session; /* the active one: */
	struct store_session session;
	char project_name[STORE_TEXT]; /* of the session's project */
};
void user_info_fini(struct user_info *i);
/* NULL: unchanged. */
int user_set(struct engine *e, const struct caller *caller, const char *user, const char *name,
	     const char *email, struct err *err);
/* For a user that has sessions but no record, only the id is set. */
int user_get(struct engine *e, const struct caller *caller, const char *user, struct user_info *ret,
	     struct err *err);

#endif
