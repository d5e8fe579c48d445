/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the memory of large requests: bodies of tens of megabytes, and responses made of as much.
 * A tenant at its own limit does not hold up others. No body is read before the request is inside.
 */
#include <malloc.h>

#include "base/clock.h"
#include "api/core/internal.h"

enum { WAIT_MS = 30000, CHECK_MS = 500 };

void body_gate_init(struct api *a)
{
	gate_init(&a->body_gate, &(struct gate_limits){ .total = BODY_GATE_MAX,
							.per_tenant = BODY_GATE_TENANT_MAX });
}

void body_gate_fini(struct api *a)
{
	gate_fini(&a->body_gate);
}

static void leave(void *ticket)
{
	malloc_trim(0); /* returns thousands of small pieces to the system */
	gate_leave(ticket);
}

/* False: no place in time, or nobody needs the response any more. */
static bool wait_for_place(struct api_call *c)
{
	int64_t now = clock_mono_ms(), until = now + WAIT_MS;
	bool in;

	do {
		in = gate_wait(&c->body_place, now + CHECK_MS < until ? now + CHECK_MS : until);
		now = clock_mono_ms();
	} while (!in && now < until && !api_is_draining(c->api) && !http_is_gone(c->rq));
	return in;
}

int body_gate_enter(struct api_call *c, struct err *err)
{
	struct gate_ticket *t = &c->body_place;

	if (t->gate)
		return 0;
	(void)gate_join(&c->api->body_gate, t,
			&(struct gate_request){ .tenant = c->caller.tenant });
	if (!wait_for_place(c)) {
		gate_leave(t);
		return err_set(err, ERR_UNAVAILABLE, "too many large requests at once; try again");
	}
	return arena_keep(c->arena, t, leave) ? 0 : err_set(err, ERR_UNAVAILABLE, "out of memory");
}
