/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: saved from files in a request, from a snapshot, or from the user's working copy. */
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"
#include "project/fragment.h"
#include "project/fragment_json.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"
#include "project/switch_commit.h"
#include "project/users.h"
#include "session/session_api.h"
#include "snapshot/snapshot.h"
#include "layers/snapshot_record.h"

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

/* ---- reading ----------------------------------------------------------------------------- */

static int fragment_not_found(const char *fragment, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Fragment not found: %.100s", fragment);
}

int fragment_find(struct engine *e, const struct caller *caller, const char *project,
		  const char *fragment, struct store_fragment *ret, struct err *err)
{
	struct store_fragment f;

	if (!fragment || !*fragment || strlen(fragment) >= STORE_ID)
		return fragment_not_found(fragment ? fragment : "", err);
	if (STORE_CALL(e, store_fragment_get, caller->tenant, fragment, &f, err) < 0)
		return err->code == ERR_NOT_FOUND ? fragment_not_found(fragment, err) : -1;
	if (strcmp(f.project, project) != 0)
		return err_set(err, ERR_CONFLICT, "Fragment %s does not belong to project %s",
			       fragment, project);
	*ret = f;
	return 0;
}

int fragment_load(struct engine *e, const struct caller *caller, const char *fragment,
		  struct store_file_list *ret, struct err *err)
{
	int r = STORE_CALL(e, store_fragment_files, caller->tenant, fragment, ret, err);

	return r < 0 && err->code == ERR_NOT_FOUND ? fragment_not_found(fragment, err) : r;
}

int fragment_list(struct engine *e, const struct caller *caller, const char *user,
		  const char *project, struct store_page page, struct store_fragment_list *ret,
		  struct err *err)
{
	if (project_access(e, caller, user, project, PROJECT_VIEW, NULL, err) < 0)
		return -1;
	return STORE_CALL(e, store_fragment_list, caller->tenant, project, page, ret, err);
}

int fragment_get(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const char *fragment, struct store_fragment *ret,
		 struct store_file_list *ret_files, struct err *err)
{
	struct store_fragment f;

	if (project_access(e, caller, user, project, PROJECT_VIEW, NULL, err) < 0 ||
	    fragment_find(e, caller, project, fragment, &f, err) < 0 ||
	    (ret_files && fragment_load(e, caller, fragment, ret_files, err) < 0))
		return -1;
	*ret = f;
	return 0;
}

/* ---- saving ------------------------------------------------------------------------------ */

struct save { /* state of one fragment_add() */
	struct engine *e;
	const struct caller *caller;
	const char *user;
	struct store_fragment f;
	struct store_file_list files;
	unsigned skipped;
	bool own_snapshot; /* created for this fragment, and deleted with it */
	struct gate_ticket memory; /* of the memory gate */
};

/* Finds the user of the snapshot's session, which may be destroyed. */
static int find_owner(struct save *s, const struct store_snapshot *snap, char ret[STORE_USER],
		      struct err *err)
{
	struct session_ref ref = { .id = snap->session };
	struct store_session session;
	struct store_tombstone t;

	if (session_get(s->e, s->caller, &ref, &session, err) == 0) {
		memcpy(ret, session.user, STORE_USER);
		store_session_fini(&session);
		return 0;
	}
	if (session_tombstone(s->e, s->caller, &ref, &t, err) < 0)
		return -1;
	memcpy(ret, t.user, STORE_USER);
	return 0;
}

static int save_snapshot(struct save *s, const char *id, struct err *err)
{
	char owner[STORE_USER] = "";
	struct store_snapshot snap;
	int r = snapshot_get(s->e, s->caller, id, &snap, err);

	if (r == 0)
		r = find_owner(s, &snap, owner, err);
	if (r < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	if (r < 0 || strcmp(owner, s->user) != 0)
		return err_set(err, ERR_NOT_FOUND, "Snapshot not found: %.100s", id);
	memcpy(s->f.snapshot, snap.id, sizeof(s->f.snapshot));
	return 0;
}

static int save_copy(struct save *s, const char *session, struct err *err)
{
	struct session_ref ref = { .id = session };
	struct snapshot_opts opts = { .name = s->f.id };
	struct store_snapshot snap;
	int r = fragment_collect_files(s->e, s->caller, session, &s->files, &s->skipped, &s->memory,
				       err);

	if (r <= 0)
		return r;
	/* too large for a record: take a snapshot of everything */
	if (session_snapshot(s->e, s->caller, &ref, &opts, &snap, err) < 0)
		return -1;
	memcpy(s->f.snapshot, snap.id, sizeof(s->f.snapshot));
	s->own_snapshot = true;
	return 0;
}

static int save_sandbox(struct save *s, struct err *err)
{
	struct store_binding key;
	char session[STORE_ID];
	/* not during a switch */
	auto_fini(user_queue_leave) struct user_queue_ticket ticket = { 0 };

	if (binding_of_copy(s->user, s->f.project, &key, err) < 0 ||
	    user_queue_join(&ticket, s->e, s->caller, s->user, err) < 0)
		return -1;
	user_queue_wait(&ticket);
	if (binding_find_session(s->e, s->caller, &key, session, err) < 0)
		return -1;
	if (!*session)
		return err_set(err, ERR_CONFLICT, "project %s has no sandbox to save from",
			       s->f.project);
	return save_copy(s, session, err);
}

static int collect(struct save *s, const struct fragment_opts *opts, struct err *err)
{
	if (opts->snapshot)
		return save_snapshot(s, opts->snapshot, err);
	return opts->from_sandbox ? save_sandbox(s, err) : 0;
}

/* Checks the options alone, before access to the project is checked. */
static int parse_opts(struct save *s, const struct fragment_opts *opts, struct err *err)
{
	bool has_id = opts->id && *opts->id;

	if ((has_id && name_check_id("id", opts->id, sizeof(s->f.id), err) < 0) ||
	    name_check_optional("title", opts->title, sizeof(s->f.title), err) < 0)
		return -1;
	if (!!opts->files + !!opts->map + !!opts->snapshot + opts->from_sandbox != 1)
		return err_set(err, ERR_INVALID,
			       "files: set exactly one of files, snapshot and fromSandbox");
	if (opts->files)
		return fragment_parse_files(opts->files, opts->files_len, &s->files, err);
	return opts->map ? fragment_files_from_json(opts->map, &s->files, err) : 0;
}

static int add_record(struct save *s, struct err *err)
{
	struct err ignored;

	hook_crash("fragment:collected");
	if (STORE_CALL(s->e, store_fragment_add, &s->f, s->files.items, s->files.count, err) == 0)
		return 0;
	if (s->own_snapshot)
		(void)snapshot_remove(s->e, s->caller, s->f.snapshot, &ignored);
	return err->code == ERR_CONFLICT
		       ? err_set(err, ERR_CONFLICT,
				 "fragment %s already exists, or its project was deleted", s->f.id)
		       : -1;
}

int fragment_add(struct engine *e, const struct caller *caller, const char *user,
		 const char *project, const struct fragment_opts *opts,
		 struct fragment_add_result *ret, struct err *err)
{
	struct save s = {
		.e = e, .caller = caller, .user = user, .f = { .created_at = engine_now(e) }
	};
	auto_call(store_file_list_fini) struct store_file_list *files = &s.files;
	bool has_id = opts->id && *opts->id;
	int r;

	(void)files;
	if (parse_opts(&s, opts, err) < 0 ||
	    project_access(e, caller, user, project, PROJECT_SAVE, NULL, err) < 0)
		return -1;
	snprintf(s.f.tenant, sizeof(s.f.tenant), "%s", caller->tenant);
	snprintf(s.f.project, sizeof(s.f.project), "%s", project);
	snprintf(s.f.title, sizeof(s.f.title), "%s", opts->title ? opts->title : "");
	if (has_id)
		snprintf(s.f.id, sizeof(s.f.id), "%s", opts->id);
	else if (id_generate("frg_", s.f.id, err) < 0)
		return -1;
	r = collect(&s, opts, err) < 0 || user_ensure(e, caller, user, err) < 0
		    ? -1
		    : add_record(&s, err);
	gate_leave(&s.memory);
	if (r < 0)
		return -1;
	*ret = (struct fragment_add_result){ .fragment = s.f, .skipped = s.skipped };
	return 0;
}

/* ---- deleting ---------------------------------------------------------------------------- */

/* A snapshot that save_copy() took has the fragment's id as its name; any other belongs to the
 * caller. */
static void delete_own_snapshot(struct engine *e, const struct caller *caller,
				const struct store_fragment *f)
{
	struct store_snapshot snap;
	struct err ignored;

	if (*f->snapshot && snapshot_get(e, caller, f->snapshot, &snap, &ignored) == 0 &&
	    strcmp(snap.name, f->id) == 0)
		(void)snapshot_remove(e, caller, f->snapshot, &ignored);
}

int fragment_remove(struct engine *e, const struct caller *caller, const char *user,
		    const char *project, const char *fragment, struct err *err)
{
	struct store_fragment f;

	if (project_access(e, caller, user, project, PROJECT_DELETE, NULL, err) < 0 ||
	    fragment_find(e, caller, project, fragment, &f, err) < 0)
		return -1;
	if (STORE_CALL(e, store_fragment_remove, caller->tenant, f.id, err) < 0)
		return err->code == ERR_NOT_FOUND ? fragment_not_found(f.id, err) : -1;
	hook_crash("fragment:removed");
	delete_own_snapshot(e, caller, &f);
	return 0;
}
