/* SPDX-License-Identifier: Apache-2.0 */
/* A user goes to another project or fragment: check, make, restore, verify, swap, and only then
 * deal with what was there before. */
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "project/internal.h"
#include "engine/start_progress.h"
#include "project/fragment.h"
#include "project/fragment_json.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"
#include "project/switch_commit.h"
#include "project/users.h"

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

struct move { /* one switch under way; its user's line is ours */
	struct engine *e;
	const struct caller *who;
	const struct switch_opts *want;
	struct store_binding copy; /* key of the working copy */
	bool has_fragment, loaded;
	struct gate_ticket memory; /* of the memory gate */
	struct store_fragment fragment;
	struct store_file_list files;
	struct switch_result out;
};

/* The sandbox, every so many files, and the switch itself. */
static unsigned steps(const struct move *m)
{
	return 2 + (unsigned)((m->files.count + RESTORE_STEP - 1) / RESTORE_STEP);
}

static void tell(struct move *m, const char *status, const char *stage, const char *text,
		 unsigned step)
{
	struct progress_state now = progress_make(m->e, status, stage, text, step, steps(m));

	if (*m->out.session)
		progress_publish(m->e, m->out.session, &now);
	if (m->want->tell)
		m->want->tell(m->want->tell_arg, &now);
}

static void tell_files(void *arg, unsigned done)
{
	struct move *m = arg;
	char text[64];

	snprintf(text, sizeof(text), "%u of %zu files are restored", done, m->files.count);
	tell(m, "running", "restore", text, 1 + done / RESTORE_STEP);
}

/* ---- before anything is touched ------------------------------------------------------------ */

static int load_fragment(struct move *m, struct err *err)
{
	if (m->loaded || !m->has_fragment)
		return 0;
	mem_gate_enter(m->e, &m->memory, (uint64_t)m->fragment.bytes);
	if (!*m->fragment.snapshot &&
	    (fragment_load(m->e, m->who, m->fragment.id, &m->files, err) < 0 ||
	     fragment_check_files(&m->files, err) < 0))
		return -1;
	m->loaded = true;
	return 0;
}

static int check(struct move *m, struct err *err)
{
	const struct switch_opts *w = m->want;

	if (project_access(m->e, m->who, w->user, w->project, PROJECT_VIEW, NULL, err) < 0 ||
	    binding_of_copy(w->user, w->project, &m->copy, err) < 0)
		return -1;
	if (!w->fragment)
		return 0;
	if (fragment_find(m->e, m->who, w->project, w->fragment, &m->fragment, err) < 0)
		return -1;
	m->has_fragment = true;
	return load_fragment(m, err);
}

static int find_latest(struct move *m, struct err *err)
{
	struct store_page page = { .limit = 1 };
	struct store_fragment_list l = { 0 };
	int r = -1;

	WITH_STORE(m->e, st)
	r = store_fragment_list(st, m->who->tenant, m->want->project, page, &l, err);
	if (r < 0)
		return -1;
	m->has_fragment = l.count > 0;
	if (m->has_fragment)
		m->fragment = l.items[0];
	store_fragment_list_fini(&l);
	return load_fragment(m, err);
}

/* ---- the session to go to ------------------------------------------------------------------ */

static struct session_opts want_of(const struct move *m)
{
	return (struct session_opts){ .user = m->want->user,
				      .project = m->want->project,
				      .idle_timeout_ms = m->want->idle_timeout_ms,
				      .max_lifetime_ms = m->want->max_lifetime_ms,
				      .wait_ms = m->want->wait_ms };
}

static void take_result(struct move *m, struct session_enter_result *r)
{
	m->out.outcome = r->outcome;
	memcpy(m->out.session, r->session.id, sizeof(m->out.session));
	memcpy(m->out.fragment, r->session.fragment, sizeof(m->out.fragment));
	session_enter_result_fini(r);
}

/* 1: it is live, with the files it had. 0: there is none, or its files are lost. */
static int enter_copy(struct move *m, struct err *err)
{
	struct session_opts want = want_of(m);
	struct session_enter_result r;
	char id[STORE_ID], now[STORE_ID];
	bool kept;

	if (binding_find_session(m->e, m->who, &m->copy, id, err) < 0)
		return -1;
	if (!*id)
		return 0;
	tell(m, "running", "sandbox", "going back to the working copy", 1);
	want.keys = &m->copy;
	want.nkeys = 1;
	want.pin = id;
	if (session_enter(m->e, m->who, &want, &r, err) < 0) {
		struct err ignored;

		if (binding_find_session(m->e, m->who, &m->copy, now, &ignored) == 0 &&
		    strcmp(id, now) != 0)
			return 0; /* destroyed a moment ago */
		return -1;
	}
	m->out.cause = r.cause;
	m->out.state_lost = r.state_lost;
	kept = !r.state_lost;
	if (kept) {
		take_result(m, &r);
		m->out.has_restored_files = true;
	} else {
		session_enter_result_fini(&r);
	}
	return kept;
}

/* From nothing but the template, or the snapshot. Nobody's keys lead to it yet. */
static int make(struct move *m, struct err *err)
{
	struct restore_progress watch = { .fn = tell_files, .arg = m };
	struct session_opts want = want_of(m);
	struct session_enter_result r;

	tell(m, "running", "sandbox", "making the sandbox", 1);
	want.template = m->want->template;
	want.overrides = m->want->over;
	want.metadata = SWITCH_PENDING;
	if (m->has_fragment) {
		want.fragment = m->fragment.id;
		if (*m->fragment.snapshot) {
			want.snapshot = m->fragment.snapshot;
			want.template = NULL; /* the snapshot's own */
		}
	}
	if (session_enter(m->e, m->who, &want, &r, err) < 0)
		return -1;
	take_result(m, &r);
	if (m->out.state_lost)
		m->out.outcome = SESSION_REPLACED;
	hook_crash("switch:made");
	tell_files(m, 0);
	if (fragment_restore_files(m->e, m->who, m->out.session, &m->files, &watch, err) < 0)
		return -1;
	mem_gate_leave(&m->memory);
	m->out.restored_files = (unsigned)m->files.count;
	m->out.has_restored_files = m->files.count > 0 || want.snapshot;
	hook_crash("switch:restored");
	return 0;
}

static int get_ready(struct move *m, struct err *err)
{
	int r = m->want->fragment ? 0 : enter_copy(m, err);

	if (r)
		return r < 0 ? -1 : 0;
	if (!m->want->fragment && find_latest(m, err) < 0)
		return -1;
	return make(m, err);
}

/* ---- what was there before ----------------------------------------------------------------- */

/* The user has moved: a failure here is not theirs. The sweep hibernates what is left running, and
 * the next switch or start removes what was replaced. */
static void leave_old(struct move *m, const struct switch_commit_result *s)
{
	static const struct session_cause_opts replaced = {
		SESSION_CAUSE_REPLACED, "its user asked for a fragment in its place", NULL
	};
	struct session_ref gone = { .id = s->replaced }, before = { .id = s->previous };
	struct err later;

	if (*s->replaced)
		(void)session_destroy(m->e, m->who, &gone, &replaced, NULL, &later);
	if (*s->previous && strcmp(s->previous, s->replaced) != 0)
		(void)session_hibernate(m->e, m->who, &before, 0, NULL, &later);
}

static int go(struct move *m, struct err *err)
{
	struct switch_commit_result s;

	if (check(m, err) < 0 || switch_finish_pending(m->e, m->who, m->want->user, err) < 0)
		return -1;
	hook_crash("switch:checked");
	if (get_ready(m, err) < 0)
		return -1;
	tell(m, "running", "switch", "moving the user", steps(m));
	if (switch_commit(m->e, m->who, m->want->user, m->out.session, &s, err) < 0)
		return -1;
	hook_crash("switch:swapped");
	memcpy(m->out.previous, s.previous, sizeof(m->out.previous));
	memcpy(m->out.sandbox, s.sandbox, sizeof(m->out.sandbox));
	leave_old(m, &s);
	hook_crash("switch:done");
	tell(m, "ready", "switch", "ready", steps(m));
	return 0;
}

int switch_user(struct engine *e, const struct caller *who, const struct switch_opts *want,
		struct switch_result *ret, struct err *err)
{
	struct move m = { .e = e, .who = who, .want = want };
	auto_call(store_file_list_fini) struct store_file_list *files = &m.files;
	struct user_queue_ticket place;
	struct err later;
	int r;

	if (name_check("user", want->user, STORE_USER, err) < 0)
		return -1;
	if (user_queue_enter(&place, e, who, want->user, err) < 0)
		return -1;
	r = go(&m, err);
	if (r < 0) {
		if (*m.out.session)
			tell(&m, "error", "switch", err->msg, steps(&m));
		(void)switch_finish_pending(e, who, want->user, &later); /* what was made goes */
	}
	user_queue_leave(&place);
	mem_gate_leave(&m.memory);
	(void)files;
	if (r < 0)
		return -1;
	snprintf(m.out.project, sizeof(m.out.project), "%s", want->project);
	*ret = m.out;
	return 0;
}

int switch_to_fragment(struct engine *e, const struct caller *who, const char *user,
		       const char *project, const char *fragment, struct switch_result *ret,
		       struct err *err)
{
	struct switch_opts want = { .user = user, .project = project, .fragment = fragment };

	return switch_user(e, who, &want, ret, err);
}

int switch_to_project(struct engine *e, const struct caller *who, const char *user,
		      const char *project, struct switch_result *ret, struct err *err)
{
	return switch_to_fragment(e, who, user, project, NULL, ret, err);
}

/* ---- where a user is ----------------------------------------------------------------------- */

static int look(struct store *st, const char *tenant, const char *user, struct active_fragment *ret,
		struct err *err)
{
	struct active_fragment a = { .has_fragment = false };
	struct store_project p;
	struct store_user u;

	if (store_user_get(st, tenant, user, &u, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (!*u.project)
		return 0;
	if (store_project_get(st, tenant, u.project, &p, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1; /* removed under their feet */
	memcpy(a.project, u.project, sizeof(a.project));
	memcpy(a.fragment, u.fragment, sizeof(a.fragment));
	a.has_fragment =
		*u.fragment && store_fragment_get(st, tenant, u.fragment, &a.record, err) == 0;
	if (*u.fragment && !a.has_fragment && err->code != ERR_NOT_FOUND)
		return -1;
	*ret = a;
	return 1;
}

int user_active_fragment(struct engine *e, const struct caller *who, const char *user,
			 struct active_fragment *ret, struct err *err)
{
	int r = -1;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = look(st, who->tenant, user, ret, err);
	return r;
}
