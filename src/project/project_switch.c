/* SPDX-License-Identifier: Apache-2.0 */
/* Switches a user to another project or fragment: check, prepare the session, restore and verify
 * its files, commit, and only then clean up the previous session. */
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"
#include "engine/start_progress.h"
#include "project/fragment.h"
#include "project/fragment_json.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"
#include "project/switch_commit.h"
#include "project/switch_flight.h"
#include "project/users.h"
#include "project/project_switch.h"
#include "engine/session_state.h"
#include "session/session_api.h"

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

struct switch_job { /* state of one switch; its user's queue is held */
	struct engine *e;
	const struct caller *caller;
	const struct switch_opts *opts;
	struct store_binding copy; /* key of the working copy */
	bool has_fragment, loaded;
	struct gate_ticket memory; /* of the memory gate */
	struct store_fragment fragment;
	struct store_file_list files;
	struct switch_result result;
};

/* One step for the sandbox, one for every RESTORE_STEP files, one for the commit. */
static unsigned count_steps(const struct switch_job *m)
{
	return 2 + (unsigned)((m->files.count + RESTORE_STEP - 1) / RESTORE_STEP);
}

static void report_progress(struct switch_job *m, const char *status, const char *stage,
			    const char *text, unsigned step)
{
	struct progress_state now = progress_make(m->e, status, stage, text, step, count_steps(m));

	if (*m->result.session)
		progress_publish(m->e, m->result.session, &now);
	if (m->opts->on_progress)
		m->opts->on_progress(m->opts->progress_arg, &now);
}

static void report_files(void *arg, unsigned done)
{
	struct switch_job *m = arg;
	char text[64];

	snprintf(text, sizeof(text), "restored %u of %zu files", done, m->files.count);
	report_progress(m, "running", "restore", text, 1 + done / RESTORE_STEP);
}

/* ---- checking ---------------------------------------------------------------------------- */

static int load_fragment(struct switch_job *m, struct err *err)
{
	if (m->loaded || !m->has_fragment)
		return 0;
	mem_gate_enter(m->e, &m->memory, (uint64_t)m->fragment.bytes);
	if (!*m->fragment.snapshot &&
	    (fragment_load(m->e, m->caller, m->fragment.id, &m->files, err) < 0 ||
	     fragment_check_files(&m->files, err) < 0))
		return -1;
	m->loaded = true;
	return 0;
}

static int check_request(struct switch_job *m, struct err *err)
{
	const struct switch_opts *opts = m->opts;

	if (project_access(m->e, m->caller, opts->user, opts->project, PROJECT_VIEW, NULL, err) <
		    0 ||
	    binding_of_copy(opts->user, opts->project, &m->copy, err) < 0)
		return -1;
	if (!opts->fragment)
		return 0;
	if (fragment_find(m->e, m->caller, opts->project, opts->fragment, &m->fragment, err) < 0)
		return -1;
	m->has_fragment = true;
	return load_fragment(m, err);
}

static int load_latest_fragment(struct switch_job *m, struct err *err)
{
	struct store_page page = { .limit = 1 };
	struct store_fragment_list l = { 0 };

	if (STORE_CALL(m->e, store_fragment_list, m->caller->tenant, m->opts->project, page, &l,
		       err) < 0)
		return -1;
	m->has_fragment = l.count > 0;
	if (m->has_fragment)
		m->fragment = l.items[0];
	store_fragment_list_fini(&l);
	return load_fragment(m, err);
}

/* ---- preparing the session --------------------------------------------------------------- */

static struct session_opts session_opts_of(const struct switch_job *m)
{
	return (struct session_opts){ .user = m->opts->user,
				      .project = m->opts->project,
				      .idle_timeout_ms = m->opts->idle_timeout_ms,
				      .max_lifetime_ms = m->opts->max_lifetime_ms,
				      .default_lifetime_ms = m->e->opts.project_lifetime_ms,
				      .wait_ms = m->opts->wait_ms };
}

static void take_result(struct switch_job *m, struct session_enter_result *r)
{
	m->result.outcome = r->outcome;
	memcpy(m->result.session, r->session.id, sizeof(m->result.session));
	memcpy(m->result.fragment, r->session.fragment, sizeof(m->result.fragment));
	session_enter_result_fini(r);
}

/* 1: the working copy runs and has its files. 0: there is none, or its files are lost. */
static int enter_copy(struct switch_job *m, struct err *err)
{
	struct session_opts opts = session_opts_of(m);
	struct session_enter_result r;
	char id[STORE_ID], now[STORE_ID];

	if (binding_find_session(m->e, m->caller, &m->copy, id, err) < 0)
		return -1;
	if (!*id) {
		m->result.state_lost = session_key_is_lost(m->e, m->caller, &m->copy, 1,
							   m->opts->user, &m->result.cause);
		return 0;
	}
	report_progress(m, "running", "sandbox", "resuming the working copy", 1);
	opts.keys = &m->copy;
	opts.nkeys = 1;
	opts.pin = id;
	if (session_enter(m->e, m->caller, &opts, &r, err) < 0) {
		struct err ignored;

		if (binding_find_session(m->e, m->caller, &m->copy, now, &ignored) == 0 &&
		    strcmp(id, now) != 0)
			return 0; /* destroyed meanwhile */
		return -1;
	}
	m->result.cause = r.cause;
	m->result.state_lost = r.state_lost;
	if (r.state_lost) {
		session_enter_result_fini(&r);
		return 0;
	}
	take_result(m, &r);
	m->result.has_restored_files = true;
	return 1;
}

/* Creates a session from the template or the snapshot. No key leads to it yet. */
static int create_session(struct switch_job *m, struct err *err)
{
	struct restore_progress progress = { .fn = report_files, .arg = m };
	struct session_opts opts = session_opts_of(m);
	struct session_enter_result r;

	report_progress(m, "running", "sandbox", "creating the sandbox", 1);
	opts.template = m->opts->template;
	opts.overrides = m->opts->over;
	opts.metadata = SWITCH_PENDING;
	if (m->has_fragment) {
		opts.fragment = m->fragment.id;
		if (*m->fragment.snapshot) {
			opts.snapshot = m->fragment.snapshot;
			opts.template = NULL; /* the snapshot has its own */
		}
	}
	if (session_enter(m->e, m->caller, &opts, &r, err) < 0)
		return -1;
	take_result(m, &r);
	if (m->result.state_lost)
		m->result.outcome = SESSION_REPLACED;
	hook_crash("switch:made");
	report_files(m, 0);
	if (fragment_restore_files(m->e, m->caller, m->result.session, &m->files, &progress, err) <
	    0)
		return -1;
	gate_leave(&m->memory);
	m->result.restored_files = (unsigned)m->files.count;
	m->result.has_restored_files = m->files.count > 0 || opts.snapshot;
	hook_crash("switch:restored");
	return 0;
}

static int prepare_session(struct switch_job *m, struct err *err)
{
	int r = m->opts->fragment ? 0 : enter_copy(m, err);

	if (r)
		return r < 0 ? -1 : 0;
	if (!m->opts->fragment && load_latest_fragment(m, err) < 0)
		return -1;
	return create_session(m, err);
}

/* ---- switching --------------------------------------------------------------------------- */

/* The switch has succeeded, so failures are ignored. The timers hibernate a session that still
 * runs, and the next switch or startup deletes a replaced one. */
static void clean_up_previous(struct switch_job *m, const struct switch_commit_result *s)
{
	static const struct session_cause_opts replaced = {
		SESSION_CAUSE_REPLACED, "replaced by a fragment that its user opened", NULL
	};
	struct session_cause_opts left = { SESSION_CAUSE_REPLACED,
					   "its user switched to another project",
					   m->caller->actor };
	struct session_ref old = { .id = s->replaced }, previous = { .id = s->previous };
	struct err later;

	if (*s->replaced)
		(void)session_destroy(m->e, m->caller, &old, &replaced, NULL, &later);
	if (*s->previous && strcmp(s->previous, s->replaced) != 0)
		(void)session_hibernate_for(m->e, m->caller, &previous, 0, &left, NULL, &later);
}

static int run_switch(struct switch_job *m, struct err *err)
{
	struct switch_commit_result done;

	if (check_request(m, err) < 0 ||
	    switch_finish_pending(m->e, m->caller, m->opts->user, err) < 0)
		return -1;
	hook_crash("switch:checked");
	if (prepare_session(m, err) < 0)
		return -1;
	report_progress(m, "running", "switch", "switching to the sandbox", count_steps(m));
	if (switch_commit(m->e, m->caller, m->opts->user, m->result.session, &done, err) < 0)
		return -1;
	hook_crash("switch:swapped");
	memcpy(m->result.previous, done.previous, sizeof(m->result.previous));
	memcpy(m->result.sandbox, done.sandbox, sizeof(m->result.sandbox));
	clean_up_previous(m, &done);
	hook_crash("switch:done");
	report_progress(m, "ready", "switch", "ready", count_steps(m));
	return 0;
}

/* At the head of the user's queue. */
static int switch_now(struct engine *e, const struct caller *caller, const struct switch_opts *opts,
		      struct switch_result *ret, struct err *err)
{
	struct switch_job m = { .e = e, .caller = caller, .opts = opts };
	auto_call(store_file_list_fini) struct store_file_list *files = &m.files;
	struct err later;
	int r = run_switch(&m, err);

	if (r < 0) {
		if (*m.result.session)
			report_progress(&m, "error", "switch", err->msg, count_steps(&m));
		/* deletes the new session */
		(void)switch_finish_pending(e, caller, opts->user, &later);
	}
	gate_leave(&m.memory);
	(void)files;
	if (r < 0)
		return -1;
	snprintf(m.result.project, sizeof(m.result.project), "%s", opts->project);
	*ret = m.result;
	return 0;
}

int switch_user(struct engine *e, const struct caller *caller, const struct switch_opts *opts,
		struct switch_result *ret, struct err *err)
{
	struct switch_flight *flight = NULL;
	struct user_queue_ticket ticket;
	int r;

	if (name_check("user", opts->user, STORE_USER, err) < 0)
		return -1;
	r = switch_flight_join(e, caller, opts, &ticket, &flight, ret, err);
	if (r <= 0)
		return r;
	r = switch_now(e, caller, opts, ret, err);
	switch_flight_finish(e, flight, r, ret, err);
	user_queue_leave(&ticket);
	return r;
}
