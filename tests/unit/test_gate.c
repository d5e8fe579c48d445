/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "tap.h"

static struct gate gate;

static bool join(struct gate_ticket *t, const char *tenant, const char *key, unsigned weight)
{
	return gate_join(&gate, t,
			 &(struct gate_request){ .tenant = tenant, .key = key, .weight = weight });
}

static bool is_in(struct gate_ticket *t)
{
	return gate_wait(t, 0);
}

static void a_key_is_first_in_first_out(void)
{
	struct gate_ticket a, b, c, other;

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	CHECK(join(&a, NULL, "k", 0) && join(&b, NULL, "k", 0) && join(&c, NULL, "k", 0));
	CHECK(join(&other, NULL, "l", 0));
	CHECK(is_in(&a) && !is_in(&b) && !is_in(&c) && is_in(&other));
	gate_leave(&other);
	CHECK(!is_in(&b) && !is_in(&c));
	gate_leave(&a);
	CHECK(is_in(&b) && !is_in(&c));
	gate_leave(&b);
	CHECK(is_in(&c));
	gate_leave(&c);
	CHECK(!gate.first && gate.end == &gate.first && gate.inside == 0);
	gate_fini(&gate);
}

static void the_same_key_of_two_tenants_is_two_keys(void)
{
	struct gate_ticket a, b;

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	CHECK(join(&a, "x", "k", 0) && join(&b, "y", "k", 0));
	CHECK(is_in(&a) && is_in(&b));
	gate_leave(&a);
	gate_leave(&b);
	gate_fini(&gate);
}

static void a_ticket_that_leaves_the_queue_lets_the_next_one_in(void)
{
	struct gate_ticket a, b, c;

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	CHECK(join(&a, NULL, "k", 0) && join(&b, NULL, "k", 0) && join(&c, NULL, "k", 0));
	gate_leave(&b); /* cancels its wait */
	CHECK(!b.gate && !is_in(&c));
	gate_leave(&a);
	CHECK(is_in(&c));
	gate_leave(&c);
	gate_leave(&c); /* does nothing */
	gate_fini(&gate);
}

static void a_deadline_keeps_the_place_in_the_queue(void)
{
	struct gate_ticket a, b, c;
	int64_t began = clock_mono_ms();

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	CHECK(join(&a, NULL, "k", 0) && join(&b, NULL, "k", 0));
	CHECK(!gate_wait(&b, began + 50));
	CHECK(clock_mono_ms() >= began + 50);
	CHECK(join(&c, NULL, "k", 0));
	gate_leave(&a);
	CHECK(is_in(&b) && !is_in(&c));
	gate_leave(&b);
	gate_leave(&c);
	gate_fini(&gate);
}

static void a_full_queue_refuses(void)
{
	struct gate_request rq = { .tenant = "t", .key = "k", .max_queued = 2 };
	struct gate_ticket a, b, c, other;

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	CHECK(gate_join(&gate, &a, &rq) && gate_join(&gate, &b, &rq));
	CHECK(!gate_join(&gate, &c, &rq) && !c.gate);
	CHECK(join(&other, "t", "l", 0));
	gate_leave(&a);
	CHECK(is_in(&b) && gate_join(&gate, &c, &rq));
	gate_leave(&b);
	gate_leave(&c);
	gate_leave(&other);
	gate_fini(&gate);
}

static void a_tenant_at_its_limit_does_not_block_others(void)
{
	struct gate_ticket t[4];

	gate_init(&gate, &(struct gate_limits){ .total = 3, .per_tenant = 2 });
	CHECK(join(&t[0], "x", NULL, 0) && join(&t[1], "x", NULL, 0) && join(&t[2], "x", NULL, 0));
	CHECK(join(&t[3], "y", NULL, 0));
	CHECK(is_in(&t[0]) && is_in(&t[1]) && !is_in(&t[2]) && is_in(&t[3]));
	gate_leave(&t[3]);
	CHECK(!is_in(&t[2]));
	gate_leave(&t[0]);
	CHECK(is_in(&t[2]));
	gate_leave(&t[1]);
	gate_leave(&t[2]);
	gate_fini(&gate);
}

static void a_large_weight_is_not_starved(void)
{
	struct gate_ticket small, large, late, more;

	gate_init(&gate, &(struct gate_limits){ .total = 4 });
	CHECK(join(&small, "x", "a", 2) && join(&large, "x", "b", 3) && join(&late, "x", "c", 1));
	CHECK(is_in(&small) && !is_in(&large) && !is_in(&late));
	gate_leave(&small);
	CHECK(is_in(&large) && is_in(&late));
	CHECK(join(&more, "x", "d", 99)); /* counts as the limit */
	CHECK(!is_in(&more));
	gate_leave(&large);
	gate_leave(&late);
	CHECK(is_in(&more));
	gate_leave(&more);
	gate_fini(&gate);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 2000 };

static unsigned counters[2]; /* each is protected by its key alone */
static atomic_uint inside_now, inside_most;

static void *count(void *arg)
{
	static const char *const keys[] = { "a", "b" };
	size_t id = (size_t)arg;

	for (size_t i = 0; i < ROUNDS; i++) {
		size_t k = (id + i) % ARRAY_LEN(keys);
		struct gate_ticket t;

		gate_enter(&gate, &t, "t", keys[k]);
		counters[k]++;
		gate_leave(&t);
	}
	return NULL;
}

static void one_thread_at_a_time_has_a_key(void)
{
	pthread_t threads[THREADS];

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	counters[0] = counters[1] = 0;
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, count, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(counters[0] + counters[1] == THREADS * ROUNDS);
	gate_fini(&gate);
}

static void *visit(void *arg)
{
	const char *tenant = (size_t)arg % 2 ? "odd" : "even";

	for (size_t i = 0; i < ROUNDS; i++) {
		struct gate_ticket t;
		unsigned now, most;

		(void)join(&t, tenant, NULL, 0);
		if (!gate_wait(&t, clock_mono_ms() + (i % 16 ? 60000 : 0))) {
			gate_leave(&t);
			continue;
		}
		now = atomic_fetch_add(&inside_now, 1) + 1;
		most = atomic_load(&inside_most);
		while (now > most && !atomic_compare_exchange_weak(&inside_most, &most, now))
			;
		atomic_fetch_sub(&inside_now, 1);
		gate_leave(&t);
	}
	return NULL;
}

static void no_more_than_the_total_are_inside(void)
{
	pthread_t threads[THREADS];

	gate_init(&gate, &(struct gate_limits){ .total = 3, .per_tenant = 2 });
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, visit, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(inside_most <= 3 && inside_most > 0);
	CHECK(!gate.first && gate.inside == 0);
	gate_fini(&gate);
}

static atomic_uint order[THREADS], norder;

struct arrival {
	struct gate_ticket ticket;
	unsigned number;
};

static void *arrive(void *arg)
{
	struct arrival *a = arg;

	(void)gate_wait(&a->ticket, -1);
	order[atomic_fetch_add(&norder, 1)] = a->number;
	gate_leave(&a->ticket);
	return NULL;
}

static void threads_enter_in_order(void)
{
	struct arrival arrivals[THREADS];
	pthread_t threads[THREADS];
	struct gate_ticket first;

	gate_init(&gate, &(struct gate_limits){ .per_key = 1 });
	gate_enter(&gate, &first, NULL, "k");
	for (unsigned i = 0; i < THREADS; i++) {
		arrivals[i].number = i;
		CHECK(join(&arrivals[i].ticket, NULL, "k", 0));
	}
	for (unsigned i = THREADS; i-- > 0;)
		CHECK(pthread_create(&threads[i], NULL, arrive, &arrivals[i]) == 0);
	usleep(20000);
	CHECK(norder == 0);
	gate_leave(&first);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(order[i] == i);
	gate_fini(&gate);
}

int main(void)
{
	RUN(a_key_is_first_in_first_out);
	RUN(the_same_key_of_two_tenants_is_two_keys);
	RUN(a_ticket_that_leaves_the_queue_lets_the_next_one_in);
	RUN(a_deadline_keeps_the_place_in_the_queue);
	RUN(a_full_queue_refuses);
	RUN(a_tenant_at_its_limit_does_not_block_others);
	RUN(a_large_weight_is_not_starved);
	RUN(one_thread_at_a_time_has_a_key);
	RUN(no_more_than_the_total_are_inside);
	RUN(threads_enter_in_order);
	return tap_done();
}
