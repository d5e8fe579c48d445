/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, errors, and memory of results. */
#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>

#include "lib/lib_engine.h"
#include "lib/lib_opts.h"
#include "session/capacity.h"
#include "service/engine_open.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

_Static_assert((int)LODGE_INTERNAL == (int)ERR_INTERNAL && (int)LODGE_LIMIT == (int)ERR_LIMIT,
	       "the codes are the same");

_Thread_local struct err last;
_Thread_local enum session_outcome last_outcome;
_Thread_local struct policy_refusal last_word;
_Thread_local struct thread_limit_hit last_full;

void forget_last(void)
{
	last_outcome = 0;
	last_word.policy[0] = last_word.word[0] = '\0';
	last_full = (struct thread_limit_hit){ 0 };
}

PUBLIC const char *lodge_last_error(void)
{
	return last.msg;
}

PUBLIC enum lodge_code lodge_last_code(void)
{
	return (enum lodge_code)last.code;
}

PUBLIC int lodge_last_errno(void)
{
	return last.sys;
}

PUBLIC enum lodge_outcome lodge_last_outcome(void)
{
	return (enum lodge_outcome)last_outcome;
}

PUBLIC const char *lodge_version(void)
{
	return LODGE_VERSION;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct box {
	void (*fini)(void *body);
	alignas(max_align_t) char body[];
};

void *box_new(size_t size, void (*fini)(void *body))
{
	struct box *b = calloc(1, sizeof(*b) + size);

	if (!b) {
		err_sys(&last, ENOMEM, "result");
		return NULL;
	}
	b->fini = fini;
	return b->body;
}

PUBLIC void lodge_free(void *result)
{
	struct box *b;

	if (!result)
		return;
	b = (struct box *)((char *)result - offsetof(struct box, body));
	if (b->fini)
		b->fini(result);
	free(b);
}

/* ---- the engine ------------------------------------------------------------------------------ */

static int open_engine(const struct lodge_options *o, struct engine **ret)
{
	struct engine_opts opts = {
		.home = o->home,
		.socket = "liblodge", /* no socket: only named in the error of another process */
		.max_active = o->max_active,
		.queue_max = o->queue_max,
		.idle_ms = o->idle_ms,
		.idle_max_ms = o->idle_max_ms,
		.lifetime_ms = o->lifetime_ms,
		.lifetime_max_ms = o->lifetime_max_ms,
		.extend_ms = o->extend_ms,
		.probe_ms = o->probe_ms,
		.probe_failures = o->probe_failures,
		.tombstones_ms = o->tombstones_ms,
		.execs_ms = o->execs_ms,
		.events_ms = o->events_ms,
		.delete_after_ms = o->delete_after_ms,
		.library = true,
		.pool = o->pool
	};
	sigset_t all, was;
	int r;

	/* The engine's threads inherit this mask, so that they take no signals of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	r = engine_open(&opts, ret, &last);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return r;
}

PUBLIC int lodge_open(const struct lodge_options *opts, struct lodge **ret)
{
	struct lodge_options o;
	struct lodge *l;

	if (TAKE(lodge_options, opts, &o) < 0)
		return -1;
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_sys(&last, ENOMEM, "lodge");
	l->tenant = strdup(o.tenant ? o.tenant : "default");
	l->actor = strdup(o.actor ? o.actor : "liblodge");
	l->caller = (struct caller){ .tenant = l->tenant, .actor = l->actor };
	if (!l->tenant || !l->actor) {
		lodge_close(l);
		return err_sys(&last, ENOMEM, "lodge");
	}
	if (thread_config_check(&l->threads, &last) < 0 || open_engine(&o, &l->engine) < 0) {
		lodge_close(l);
		return -1;
	}
	*ret = l;
	return 0;
}

PUBLIC void lodge_close(struct lodge *l)
{
	if (!l)
		return;
	engine_close(l->engine);
	free(l->tenant);
	free(l->actor);
	free(l);
}

PUBLIC int lodge_room_get(struct lodge *l, struct lodge_room **ret)
{
	struct lodge_room *room = box_new(sizeof(*room), NULL);
	struct capacity_report full;

	if (!room)
		return -1;
	capacity_get_report(l->engine, &full);
	*room = (struct lodge_room){ .active = full.active,
				     .max = full.max,
				     .waiting = full.waiting,
				     .idle = full.idle,
				     .retry_after_ms = full.retry_after_ms };
	*ret = room;
	return 0;
}
