/* SPDX-License-Identifier: Apache-2.0 */
#include "session/single_flight.h"

#include <stdlib.h>
#include <string.h>

/* In engine.single_flights until it is finished; engine.mutex. */
struct single_flight {
	struct single_flight *next;
	char *name;
	unsigned refs; /* the leader and those that wait */
	struct gate_ticket ticket; /* the leader's; the others queue behind it */
	int r;
	struct err err;
	struct session_enter_result result;
};

static struct single_flight *find(struct engine *e, const char *name)
{
	struct single_flight *f = e->single_flights;

	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	return f;
}

static struct single_flight *add(struct engine *e, const char *name)
{
	struct single_flight *f = calloc(1, sizeof(*f));

	if (f)
		f->name = strdup(name);
	if (!f || !f->name) {
		free(f);
		return NULL;
	}
	f->next = e->single_flights;
	e->single_flights = f;
	return f;
}

static void unref(struct single_flight *f)
{
	if (--f->refs > 0)
		return;
	session_enter_result_fini(&f->result);
	free(f->name);
	free(f);
}

static int share_result(const struct session_enter_result *from, struct session_enter_result *ret,
			struct err *err)
{
	/* Only the leader created, resumed or replaced it; a loss concerns all of them. */
	struct session_enter_result copy = { .outcome = SESSION_REUSED,
					     .state_lost = from->state_lost };

	if (store_session_copy(&from->session, &copy.session, err) < 0)
		return -1;
	if (from->state_lost)
		copy.cause = from->cause;
	*ret = copy;
	return 0;
}

/* The leader has left the gate before this caller gets in, so the result is there. */
static int wait_for_leader(struct engine *e, struct single_flight *f, struct gate_ticket *t,
			   struct session_enter_result *ret, struct err *err)
{
	int r;

	(void)gate_wait(t, -1);
	gate_leave(t);
	MUTEX_GUARD(&e->mutex);
	r = f->r;
	if (r < 0)
		*err = f->err;
	else
		r = share_result(&f->result, ret, err);
	unref(f);
	return r;
}

bool single_flight_join(struct engine *e, const char *name, struct single_flight **ret_flight,
			struct session_enter_result *ret, int *ret_r, struct err *err)
{
	struct gate_ticket own;
	struct single_flight *f;
	bool leads;

	pthread_mutex_lock(&e->mutex);
	f = find(e, name);
	leads = !f;
	if (leads)
		f = add(e, name);
	if (f) { /* with the mutex, so that the leader is first in the gate */
		f->refs++;
		(void)gate_join(&e->name_locks, leads ? &f->ticket : &own,
				&(struct gate_request){ .key = f->name });
	}
	pthread_mutex_unlock(&e->mutex);
	if (!leads) {
		*ret_r = wait_for_leader(e, f, &own, ret, err);
		return false;
	}
	/* without memory each caller leads: the store still lets only one create the session */
	if (f)
		(void)gate_wait(&f->ticket, -1);
	*ret_flight = f;
	return true;
}

void single_flight_finish(struct engine *e, struct single_flight *f, int r,
			  const struct session_enter_result *res, const struct err *err)
{
	struct single_flight **p = &e->single_flights;

	if (!f)
		return;
	pthread_mutex_lock(&e->mutex);
	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	f->r = r;
	if (r < 0)
		f->err = *err;
	else if (f->refs > 1)
		f->r = share_result(res, &f->result, &f->err);
	pthread_mutex_unlock(&e->mutex);
	gate_leave(&f->ticket);
	MUTEX_GUARD(&e->mutex);
	unref(f);
}
