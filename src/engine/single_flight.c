/* SPDX-License-Identifier: Apache-2.0 */
/* One creation per key: who comes while it is under way waits for its result, good or bad. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/single_flight.h"

struct single_flight {
	struct single_flight *next;
	char *name;
	unsigned refs;
	bool landed;
	int r;
	struct err err;
	struct session_enter_result result;
};

static struct single_flight *find(struct engine *e, const char *name)
{
	struct single_flight *f = e->single_flights.list;

	while (f && (f->landed || strcmp(f->name, name) != 0))
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
	f->refs = 1;
	f->next = e->single_flights.list;
	e->single_flights.list = f;
	return f;
}

static void drop(struct engine *e, struct single_flight *f)
{
	struct single_flight **p = &e->single_flights.list;

	if (--f->refs > 0)
		return;
	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	session_enter_result_fini(&f->result);
	free(f->name);
	free(f);
}

static int copy_result(const struct session_enter_result *from, struct session_enter_result *ret,
		       struct err *err)
{
	struct session_enter_result copy = *from;

	if (store_session_copy(&from->session, &copy.session, err) < 0)
		return -1;
	*ret = copy;
	return 0;
}

bool single_flight_join(struct engine *e, const char *name, struct session_enter_result *ret,
			int *ret_r, struct err *err)
{
	struct single_flight *f;

	pthread_mutex_lock(&e->mutex);
	f = find(e, name);
	if (!f) {
		/* without memory everybody leads for himself: the store still allows only one */
		(void)add(e, name);
		pthread_mutex_unlock(&e->mutex);
		return true;
	}
	f->refs++;
	while (!f->landed)
		pthread_cond_wait(&e->single_flights.finished, &e->mutex);
	*ret_r = f->r;
	if (f->r < 0)
		*err = f->err;
	else
		*ret_r = copy_result(&f->result, ret, err);
	drop(e, f);
	pthread_mutex_unlock(&e->mutex);
	return false;
}

void single_flight_finish(struct engine *e, const char *name, int r,
			  const struct session_enter_result *res, const struct err *err)
{
	struct single_flight *f;

	pthread_mutex_lock(&e->mutex);
	f = find(e, name);
	if (f) {
		f->landed = true;
		f->r = r;
		if (r < 0)
			f->err = *err;
		else if (f->refs > 1)
			f->r = copy_result(res, &f->result, &f->err);
		pthread_cond_broadcast(&e->single_flights.finished);
		drop(e, f);
	}
	pthread_mutex_unlock(&e->mutex);
}

void name_lock(struct engine *e, const char *name)
{
	pthread_mutex_lock(&e->mutex);
	while (find(e, name))
		pthread_cond_wait(&e->single_flights.finished, &e->mutex);
	(void)add(e, name); /* without memory nobody is kept out, which beats waiting for ever */
	pthread_mutex_unlock(&e->mutex);
}

void name_unlock(struct engine *e, const char *name)
{
	struct single_flight *f;

	pthread_mutex_lock(&e->mutex);
	f = find(e, name);
	if (f) {
		f->landed = true;
		pthread_cond_broadcast(&e->single_flights.finished);
		drop(e, f);
	}
	pthread_mutex_unlock(&e->mutex);
}

void session_enter_result_fini(struct session_enter_result *r)
{
	store_session_fini(&r->session);
	memset(r, 0, sizeof(*r));
}
