/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes per second: create, first output, destroy, with several commands in flight. The keeper
 * creates one after the other by design; commands and destruction overlap with it. */
#include "bench.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_log.h"

enum { FLIGHTS_MAX = 256, STUCK_MS = 60000 };

struct single_flight {
	struct sandbox *sb; /* NULL: the slot is free */
	struct guest_exec *x; /* NULL: being destroyed */
	int *done;
};

static void on_destroyed(void *arg, const struct keeper_reply *reply, int fd, const struct err *err)
{
	struct single_flight *f = arg;

	(void)fd;
	must(reply ? 0 : -1, err, "destroy");
	sandbox_free(f->sb);
	f->sb = NULL;
	++*f->done;
}

static void take_off(const struct bench *b, struct single_flight *f)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct guest_exec_spec cmd = { .text = "echo hi" };
	struct err err;

	spec.no_pool = true;
	must(sandbox_new(b->keeper, &spec, &f->sb, &err), &err, "sandbox_new");
	must(guest_exec_begin(f->sb, &cmd, &f->x, &err), &err, "exec_begin");
}

static void land(const struct bench *b, struct single_flight *f)
{
	struct keeper_request r = keeper_client_request(KEEPER_DESTROY, sandbox_id(f->sb));
	struct err err;

	err_set(&err, ERR_INTERNAL, "no output");
	must(guest_exec_end(f->x, GUEST_EXEC_OUT) == 3 ? 0 : -1, &err, "echo hi");
	guest_exec_free(f->x);
	f->x = NULL;
	must(keeper_client_send(b->keeper, &r, NULL, 0, on_destroyed, f, &err), &err, "destroy");
}

/* Handles what has happened; with `wait`, waits for something to happen. */
static void serve(const struct bench *b, struct single_flight *f, int n, bool wait)
{
	struct pollfd p[FLIGHTS_MAX + 1];
	struct err err;

	p[n] = (struct pollfd){ .fd = keeper_client_fd(b->keeper), .events = POLLIN };
	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = f[i].x ? agent_fd(guest_exec_agent(f[i].x)) : -1,
					.events = POLLIN };
	if (poll(p, (nfds_t)n + 1, wait ? STUCK_MS : 0) <= 0) {
		err_set(&err, ERR_TIMEOUT, "nothing happens");
		must(wait ? -1 : 0, &err, "throughput");
		return;
	}
	if (p[n].revents)
		must(keeper_client_dispatch(b->keeper, &err), &err, "keeper");
	for (int i = 0; i < n; i++) {
		if (!f[i].x || !p[i].revents)
			continue;
		must(agent_dispatch(guest_exec_agent(f[i].x), &err), &err, "sandbox");
		if (*guest_exec_ended(f[i].x))
			land(b, &f[i]);
	}
}

static struct single_flight *free_place(struct single_flight *f, int n, int *ret_busy)
{
	struct single_flight *place = NULL;

	*ret_busy = 0;
	for (int i = 0; i < n; i++)
		if (f[i].sb)
			++*ret_busy;
		else
			place = &f[i];
	return place;
}

void rate_lodge(const struct bench *b, int round, int in_flight)
{
	struct single_flight f[FLIGHTS_MAX] = { 0 };
	double t0 = now_us(), until = t0 + b->rate_ms * 1e3;
	int done = 0, busy;
	char what[32];

	for (int i = 0; i < in_flight; i++)
		f[i].done = &done;
	do {
		struct single_flight *place = free_place(f, in_flight, &busy);
		bool more = place && now_us() < until;

		if (more) {
			take_off(b, place);
			busy++;
		}
		if (busy)
			serve(b, f, in_flight, !more);
	} while (busy || now_us() < until);
	snprintf(what, sizeof(what), "rate%d", in_flight);
	put_sample(what, "lodge", "answered", round, done * 1e6 / (now_us() - t0));
	engine_settle(b);
	/* the 50 ms for kernel threads do not count as the keeper's work, as with the others */
	put_sample(what, "lodge", "per_s", round, done * 1e6 / (now_us() - 50000 - t0));
}
