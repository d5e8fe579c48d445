/* SPDX-License-Identifier: Apache-2.0 */
/* Places for what needs much memory: bodies of tens of megabytes, and answers from as many. A
 * tenant that fills its own share leaves places for others. Nothing of a body is read before it has
 * one. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "api/core/internal.h"

enum { WAIT_MS = 30000, LOOK_MS = 500 };

void body_gate_init(struct api *a)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&a->large.mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->large.left, &attr);
	pthread_condattr_destroy(&attr);
}

void body_gate_fini(struct api *a)
{
	pthread_cond_destroy(&a->large.left);
	pthread_mutex_destroy(&a->large.mutex);
}

static void leave(void *place)
{
	struct body_gate_slot *p = place;
	struct api *a = p->api;

	malloc_trim(0); /* thousands of small pieces: the machine may have them back */
	pthread_mutex_lock(&a->large.mutex);
	a->large.tenants[p->at][0] = '\0';
	pthread_cond_broadcast(&a->large.left);
	pthread_mutex_unlock(&a->large.mutex);
}

/* Locked: the number of a place, -1 if there is none for this tenant. */
static int take(struct api *a, const char *tenant)
{
	int at = -1, theirs = 0;

	for (int i = 0; i < LARGE_MAX; i++) {
		theirs += strcmp(a->large.tenants[i], tenant) == 0;
		if (!*a->large.tenants[i])
			at = i;
	}
	if (at < 0 || theirs >= LARGE_TENANT_MAX)
		return -1;
	snprintf(a->large.tenants[at], sizeof(a->large.tenants[at]), "%s", tenant);
	return at;
}

/* Locked, but for moments. */
static void nap(struct api *a)
{
	struct timespec ts = clock_deadline(CLOCK_MONOTONIC, LOOK_MS);

	pthread_cond_timedwait(&a->large.left, &a->large.mutex, &ts);
}

int body_gate_enter(struct api_call *c, struct err *err)
{
	int64_t until = clock_mono_us() + WAIT_MS * 1000LL;
	struct body_gate_slot *p = &c->large;
	int at;

	if (p->api)
		return 0;
	pthread_mutex_lock(&c->api->large.mutex);
	while ((at = take(c->api, c->who.tenant)) < 0 && clock_mono_us() < until &&
	       !api_is_draining(c->api) && !http_is_gone(c->rq))
		nap(c->api);
	pthread_mutex_unlock(&c->api->large.mutex);
	if (at < 0)
		return err_set(err, ERR_UNAVAILABLE, "too many large requests at once: try again");
	*p = (struct body_gate_slot){ .api = c->api, .at = at };
	return arena_keep(c->arena, p, leave) ? 0 : err_set(err, ERR_UNAVAILABLE, "no memory");
}
