/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: projects, their fragments, teams and users. Included by lodge.h. */
#ifndef LODGE_PROJECT_H
#define LODGE_PROJECT_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each user has one active sandbox, which moves between projects. A project has fragments: saved
 * sets of files. A user is created by the first call that names it. LODGE_NOT_FOUND: the project or
 * fragment does not exist, or the user has no access to it. */

struct lodge_switched {
	const char *session, *sandbox;
	const char *project, *fragment; /* now active; fragment may be "" */
	const char *previous; /* the session that was active before, if another */
	uint32_t restored_files; /* written by this switch */
	int has_restored_files; /* not 0: a working copy, or a fragment with files */
	int state_lost; /* not 0: the files of the working copy were lost; the cause says why */
	enum lodge_outcome outcome;
	const struct lodge_cause *cause; /* may be NULL */
};
/* Moves the user's sandbox to a fragment of a project, with exactly its files. fragment NULL: to
 * the user's working copy of the project, or its latest fragment. What the user did elsewhere is
 * kept as that project's working copy. */
int lodge_switch_user_to_fragment(struct lodge *l, const char *user, const char *project,
				  const char *fragment, struct lodge_switched **ret);
int lodge_switch_user_to_project(struct lodge *l, const char *user, const char *project,
				 struct lodge_switched **ret);

struct lodge_active_fragment {
	const char *project, *fragment; /* fragment may be "" */
};
/* Where the user is. *ret is NULL if the user has no active project. */
int lodge_get_user_active_fragment(struct lodge *l, const char *user,
				   struct lodge_active_fragment **ret);

struct lodge_kill {
	int killed; /* 0: it could not be */
	const char *user, *session, *sandbox, *project;
};
struct lodge_kills {
	struct lodge_kill *items;
	size_t count, killed, failed;
};
/* Kill the running sandboxes of a user, or of all users, and delete their files; hibernated
 * sessions stay. */
int lodge_kill_user_active_sandbox(struct lodge *l, const char *user, struct lodge_kills **ret);
int lodge_kill_all_user_sandboxes(struct lodge *l, struct lodge_kills **ret);

struct lodge_project {
	const char *id, *name, *owner, *team; /* team may be "" */
	int64_t created_at;
};
struct lodge_projects {
	struct lodge_project *items;
	size_t count;
	int64_t next; /* 0: no more */
};
/* id NULL: a new one; team NULL: none. The user owns it. */
int lodge_project_add(struct lodge *l, const char *user, const char *id, const char *name,
		      const char *team, struct lodge_project **ret);
/* `owner` of the result is the user of the project. */
int lodge_get_user_id_for_project(struct lodge *l, const char *project, struct lodge_project **ret);
/* Those that the user owns or shares by a team, oldest first. limit 0: 100. */
int lodge_project_list(struct lodge *l, const char *user, int64_t after, uint32_t limit,
		       struct lodge_projects **ret);
/* With its fragments and the working copies of all users. */
int lodge_project_remove(struct lodge *l, const char *user, const char *project);

struct lodge_fragment_options { /* never NULL; one of files, snapshot and from_sandbox */
	size_t size;
	const char *id, *title; /* NULL: a new id; no title */
	const char *files; /* a JSON object, path -> text; "__BASE64__..." is bytes */
	const char *snapshot; /* of a session of the user */
	int from_sandbox; /* not 0: the files of the user's working copy */
};
struct lodge_fragment {
	const char *id, *project, *title, *snapshot; /* all but the first two may be "" */
	int64_t files, bytes, created_at;
};
struct lodge_fragments {
	struct lodge_fragment *items;
	size_t count;
	int64_t next; /* 0: no more */
};
int lodge_fragment_add(struct lodge *l, const char *user, const char *project,
		       const struct lodge_fragment_options *options, struct lodge_fragment **ret);
/* Newest first. limit 0: 100. */
int lodge_fragment_list(struct lodge *l, const char *user, const char *project, int64_t after,
			uint32_t limit, struct lodge_fragments **ret);
int lodge_fragment_remove(struct lodge *l, const char *user, const char *project,
			  const char *fragment);

struct lodge_member {
	const char *user, *role; /* OWNER, ADMIN, MEMBER or VIEWER */
};
struct lodge_members {
	struct lodge_member *items;
	size_t count;
};
/* `by` is the acting user, who must be allowed to; NULL: the application, which is. */
int lodge_team_put(struct lodge *l, const char *by, const char *team, const char *user,
		   const char *role);
int lodge_team_remove(struct lodge *l, const char *by, const char *team, const char *user);
int lodge_team_list(struct lodge *l, const char *by, const char *team, struct lodge_members **ret);

/* Sets the display name and email of a user. NULL: unchanged; "": removes it. */
int lodge_user_set(struct lodge *l, const char *user, const char *name, const char *email);

#ifdef __cplusplus
}
#endif
#endif
