/* SPDX-License-Identifier: Apache-2.0 */
/* A keyed gate: lets callers in as long as limits allow it, else queues them. Callers with the same
 * tenant and key get in strictly first in, first out; a caller whose own tenant or key is at its
 * limit does not hold up the others.
 *
 * A gate with one caller per key is a set of named, fair mutexes. Its mutex is taken last. */
#ifndef LODGE_BASE_GATE_H
#define LODGE_BASE_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gate_limits { /* sums of the weights that are inside; 0: no limit */
	unsigned total, per_tenant, per_key;
};

struct gate {
	pthread_mutex_t mutex;
	struct gate_limits limits;
	unsigned inside; /* total weight */
	struct gate_ticket *first, **end; /* inside or waiting, in the order of gate_join() */
};

struct gate_request {
	const char *tenant, *key; /* NULL: ""; borrowed until gate_leave() */
	unsigned weight; /* 0: 1 */
	unsigned max_queued; /* tickets of this tenant and key, including this one; 0: any number */
};

struct gate_ticket {
	struct gate *gate; /* NULL: neither inside nor waiting */
	struct gate_ticket *next;
	const char *tenant, *key;
	unsigned weight;
	bool inside;
	pthread_cond_t admitted;
};

void gate_init(struct gate *g, const struct gate_limits *limits);
void gate_fini(struct gate *g); /* without tickets */

/* Takes a place in the queue, or gets in at once; never blocks. False: max_queued is reached, and
 * *t is not in use. A weight above a limit counts as the limit. */
bool gate_join(struct gate *g, struct gate_ticket *t, const struct gate_request *rq);
/* Waits until the ticket is inside: true. False: clock_mono_ms() reached `until`, and the ticket
 * keeps its place in the queue. until < 0: no deadline. */
bool gate_wait(struct gate_ticket *t, int64_t until);
/* Whether no other ticket of its tenant and key joined after it. The answer may be out of date
 * unless a lock of the caller keeps others from joining. */
bool gate_is_last(const struct gate_ticket *t);
/* Leaves the gate, or cancels the wait. A ticket with gate NULL is allowed. */
void gate_leave(struct gate_ticket *t);

/* gate_join() without max_queued, then gate_wait() without a deadline. */
void gate_enter(struct gate *g, struct gate_ticket *t, const char *tenant, const char *key);

#endif
