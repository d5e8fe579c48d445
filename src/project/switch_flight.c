/* SPDX-License-Identifier: Apache-2.0 */
#include "project/switch_flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

/* In engine.switches until it is finished; engine.mutex. */
struct switch_flight {
	struct switch_flight *next;
	const char *tenant; /* the leader's, like opts and ticket: valid while it is in the list */
	const struct switch_opts *opts;
	struct user_queue_ticket *ticket;
	unsigned refs; /* the leader and those that wait */
	bool done;
	pthread_cond_t changed;
	int r;
	struct err err;
	struct switch_result result;
};

static bool is_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Progress goes to one caller only, and settings for a new sandbox may differ. */
static bool is_plain(const struct switch_opts *o)
{
	return !o->on_progress && !o->template && !o->over && !o->idle_timeout_ms &&
	       !o->max_lifetime_ms && !o->wait_ms;
}

static struct switch_flight *find(struct engine *e, const struct caller *caller,
				  const struct switch_opts *o)
{
	struct switch_flight *f = is_plain(o) ? e->switches : NULL;

	while (f && !(is_plain(f->opts) && is_same(f->tenant, caller->tenant) &&
		      is_same(f->opts->user, o->user) && is_same(f->opts->project, o->project) &&
		      is_same(f->opts->fragment, o->fragment) && user_queue_is_last(f->ticket)))
		f = f->next;
	return f;
}

static struct switch_flight *add(struct engine *e, const struct caller *caller,
				 const struct switch_opts *o, struct user_queue_ticket *ticket)
{
	struct switch_flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->tenant = caller->tenant;
	f->opts = o;
	f->ticket = ticket;
	f->refs = 1;
	cond_init(&f->changed);
	f->next = e->switches;
	e->switches = f;
	return f;
}

static void unref(struct switch_flight *f)
{
	if (--f->refs > 0)
		return;
	pthread_cond_destroy(&f->changed);
	free(f);
}

/* With engine.mutex, which is released while it waits. */
static int share_result(struct engine *e, struct switch_flight *f, struct switch_result *ret,
			struct err *err)
{
	int r;

	f->refs++;
	while (!f->done)
		pthread_cond_wait(&f->changed, &e->mutex);
	r = f->r;
	if (r < 0) {
		*err = f->err;
	} else {
		*ret = f->result;
		ret->outcome = SESSION_REUSED;
	}
	unref(f);
	return r;
}

int switch_flight_join(struct engine *e, const struct caller *caller,
		       const struct switch_opts *opts, struct user_queue_ticket *ticket,
		       struct switch_flight **ret_flight, struct switch_result *ret,
		       struct err *err)
{
	struct switch_flight *f;
	int r = 1;

	pthread_mutex_lock(&e->mutex); /* the order of the list is that of the queue */
	f = find(e, caller, opts);
	if (f)
		r = share_result(e, f, ret, err);
	else if (user_queue_join(ticket, e, caller, opts->user, err) < 0)
		r = -1;
	else
		*ret_flight = add(e, caller, opts, ticket); /* without memory it is not shared */
	pthread_mutex_unlock(&e->mutex);
	if (r > 0)
		user_queue_wait(ticket);
	return r;
}

void switch_flight_finish(struct engine *e, struct switch_flight *f, int r,
			  const struct switch_result *result, const struct err *err)
{
	struct switch_flight **p = &e->switches;

	if (!f)
		return;
	MUTEX_GUARD(&e->mutex);
	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	f->done = true;
	f->r = r;
	if (r < 0)
		f->err = *err;
	else
		f->result = *result;
	pthread_cond_broadcast(&f->changed);
	unref(f);
}
