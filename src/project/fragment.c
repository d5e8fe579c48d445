/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: saved from what a caller sends, from a snapshot, or from the user's working copy. */
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "project/internal.h"
#include "project/fragment.h"
#include "project/fragment_json.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"
#include "project/switch_commit.h"
#include "project/users.h"

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

/* ---- looking ------------------------------------------------------------------------------- */

static int unknown(const char *fragment, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Fragment not found: %.100s", fragment);
}

int fragment_find(struct engine *e, const struct caller *who, const char *project,
		  const char *fragment, struct store_fragment *ret, struct err *err)
{
	struct store_fragment f;
	int r = -1;

	if (!fragment || !*fragment || strlen(fragment) >= STORE_ID)
		return unknown(fragment ? fragment : "", err);
	WITH_STORE(e, st)
	r = store_fragment_get(st, who->tenant, fragment, &f, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? unknown(fragment, err) : -1;
	if (strcmp(f.project, project) != 0)
		return err_set(err, ERR_CONFLICT, "Fragment %s does not belong to project %s",
			       fragment, project);
	*ret = f;
	return 0;
}

int fragment_load(struct engine *e, const struct caller *who, const char *fragment,
		  struct store_file_list *ret, struct err *err)
{
	int r = -1;

	WITH_STORE(e, st)
	r = store_fragment_files(st, who->tenant, fragment, ret, err);
	return r < 0 && err->code == ERR_NOT_FOUND ? unknown(fragment, err) : r;
}

int fragment_list(struct engine *e, const struct caller *who, const char *user, const char *project,
		  struct store_page page, struct store_fragment_list *ret, struct err *err)
{
	int r = -1;

	if (project_access(e, who, user, project, PROJECT_VIEW, NULL, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = store_fragment_list(st, who->tenant, project, page, ret, err);
	return r;
}

int fragment_get(struct engine *e, const struct caller *who, const char *user, const char *project,
		 const char *fragment, struct store_fragment *ret,
		 struct store_file_list *ret_files, struct err *err)
{
	struct store_fragment f;

	if (project_access(e, who, user, project, PROJECT_VIEW, NULL, err) < 0 ||
	    fragment_find(e, who, project, fragment, &f, err) < 0 ||
	    (ret_files && fragment_load(e, who, fragment, ret_files, err) < 0))
		return -1;
	*ret = f;
	return 0;
}

/* ---- saving -------------------------------------------------------------------------------- */

struct save { /* one fragment_add() under way */
	struct engine *e;
	const struct caller *who;
	const char *user;
	struct store_fragment f;
	struct store_file_list files;
	unsigned skipped;
	bool own_snapshot; /* made for this fragment, and goes with it */
	struct gate_ticket memory; /* of the memory gate */
};

/* Whose files these are; the session may be gone. */
static int owner_of(struct save *s, const struct store_snapshot *snap, char ret[STORE_USER],
		    struct err *err)
{
	struct session_ref ref = { .id = snap->session };
	struct store_session session;
	struct store_tombstone t;

	if (session_get(s->e, s->who, &ref, &session, err) == 0) {
		memcpy(ret, session.user, STORE_USER);
		store_session_fini(&session);
		return 0;
	}
	if (session_tombstone(s->e, s->who, &ref, &t, err) < 0)
		return -1;
	memcpy(ret, t.user, STORE_USER);
	return 0;
}

static int from_snapshot(struct save *s, const char *id, struct err *err)
{
	char owner[STORE_USER] = "";
	struct store_snapshot snap;
	int r = snapshot_get(s->e, s->who, id, &snap, err);

	if (r == 0)
		r = owner_of(s, &snap, owner, err);
	if (r < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	if (r < 0 || strcmp(owner, s->user) != 0)
		return err_set(err, ERR_NOT_FOUND, "Snapshot not found: %.100s", id);
	memcpy(s->f.snapshot, snap.id, sizeof(s->f.snapshot));
	return 0;
}

static int from_copy(struct save *s, const char *session, struct err *err)
{
	struct session_ref ref = { .id = session };
	struct snapshot_opts want = { .name = s->f.id };
	struct store_snapshot snap;
	int r = fragment_collect_files(s->e, s->who, session, &s->files, &s->skipped, &s->memory,
				       err);

	if (r <= 0)
		return r;
	/* too much for a record: all of it, as it is */
	if (session_snapshot(s->e, s->who, &ref, &want, &snap, err) < 0)
		return -1;
	memcpy(s->f.snapshot, snap.id, sizeof(s->f.snapshot));
	s->own_snapshot = true;
	return 0;
}

static int from_sandbox(struct save *s, struct err *err)
{
	struct store_binding key;
	char session[STORE_ID];
	struct user_queue_ticket place;
	int r;

	if (binding_of_copy(s->user, s->f.project, &key, err) < 0)
		return -1;
	/* not in the middle of a switch */
	if (user_queue_enter(&place, s->e, s->who, s->user, err) < 0)
		return -1;
	r = binding_find_session(s->e, s->who, &key, session, err);
	if (r == 0 && !*session)
		r = err_set(err, ERR_CONFLICT, "There is no sandbox of project %s to save from",
			    s->f.project);
	if (r == 0)
		r = from_copy(s, session, err);
	user_queue_leave(&place);
	return r;
}

static int collect(struct save *s, const struct fragment_opts *want, struct err *err)
{
	if (want->snapshot)
		return from_snapshot(s, want->snapshot, err);
	return want->from_sandbox ? from_sandbox(s, err) : 0;
}

/* What can be told of the words alone, before anybody's project is looked at. */
static int read_want(struct save *s, const struct fragment_opts *want, struct err *err)
{
	bool named = want->id && *want->id;

	if ((named && name_check_id("id", want->id, sizeof(s->f.id), err) < 0) ||
	    name_check_optional("title", want->title, sizeof(s->f.title), err) < 0)
		return -1;
	if (!!want->files + !!want->map + !!want->snapshot + want->from_sandbox != 1)
		return err_set(err, ERR_INVALID, "files: one of files, a snapshot or fromSandbox");
	if (want->files)
		return fragment_parse_files(want->files, want->files_len, &s->files, err);
	return want->map ? fragment_files_from_json(want->map, &s->files, err) : 0;
}

static int add(struct save *s, struct err *err)
{
	int r = -1;
	struct err ignored;

	hook_crash("fragment:collected");
	WITH_STORE(s->e, st)
	r = store_fragment_add(st, &s->f, s->files.items, s->files.count, err);
	if (r == 0)
		return 0;
	if (s->own_snapshot)
		(void)snapshot_remove(s->e, s->who, s->f.snapshot, &ignored);
	return err->code == ERR_CONFLICT
		       ? err_set(err, ERR_CONFLICT,
				 "Fragment %s is there already, or its project is "
				 "not any more",
				 s->f.id)
		       : -1;
}

int fragment_add(struct engine *e, const struct caller *who, const char *user, const char *project,
		 const struct fragment_opts *want, struct fragment_add_result *ret, struct err *err)
{
	struct save s = { .e = e, .who = who, .user = user, .f = { .created_at = engine_now(e) } };
	auto_call(store_file_list_fini) struct store_file_list *files = &s.files;
	bool named = want->id && *want->id;
	int r;

	(void)files;
	if (read_want(&s, want, err) < 0 ||
	    project_access(e, who, user, project, PROJECT_SAVE, NULL, err) < 0)
		return -1;
	snprintf(s.f.tenant, sizeof(s.f.tenant), "%s", who->tenant);
	snprintf(s.f.project, sizeof(s.f.project), "%s", project);
	snprintf(s.f.title, sizeof(s.f.title), "%s", want->title ? want->title : "");
	if (named)
		snprintf(s.f.id, sizeof(s.f.id), "%s", want->id);
	else if (id_generate("frg_", s.f.id, err) < 0)
		return -1;
	r = collect(&s, want, err) < 0 || user_ensure(e, who, user, err) < 0 ? -1 : add(&s, err);
	mem_gate_leave(&s.memory);
	if (r < 0)
		return -1;
	*ret = (struct fragment_add_result){ .fragment = s.f, .skipped = s.skipped };
	return 0;
}

/* ---- removing ------------------------------------------------------------------------------ */

/* One that from_sandbox made has the fragment's name; any other is its caller's. */
static void drop_snapshot(struct engine *e, const struct caller *who,
			  const struct store_fragment *f)
{
	struct store_snapshot snap;
	struct err ignored;

	if (*f->snapshot && snapshot_get(e, who, f->snapshot, &snap, &ignored) == 0 &&
	    strcmp(snap.name, f->id) == 0)
		(void)snapshot_remove(e, who, f->snapshot, &ignored);
}

int fragment_remove(struct engine *e, const struct caller *who, const char *user,
		    const char *project, const char *fragment, struct err *err)
{
	struct store_fragment f;
	int r = -1;

	if (project_access(e, who, user, project, PROJECT_DELETE, NULL, err) < 0 ||
	    fragment_find(e, who, project, fragment, &f, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = store_fragment_remove(st, who->tenant, f.id, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? unknown(f.id, err) : -1;
	hook_crash("fragment:removed");
	drop_snapshot(e, who, &f);
	return 0;
}
