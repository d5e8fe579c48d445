/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of the store. The includer defines open_empty() and calls run_contract(). */
#ifndef LODGE_TESTS_STORE_CONTRACT_H
#define LODGE_TESTS_STORE_CONTRACT_H

#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "store/store.h"
#include "tap.h"

static struct store *open_empty(void); /* NULL if it cannot be opened */

#define OPEN()                                                                                     \
	auto_call(store_close) struct store *st = open_empty();                                    \
	struct err err = { 0 };                                                                    \
	(void)err;                                                                                 \
	CHECK(st)

static const struct store_page all = { .limit = STORE_PAGE_MAX };

static struct store_session session(const char *id)
{
	struct store_session s = { .tenant = "t", .created_at = 1000 };

	snprintf(s.id, sizeof(s.id), "%s", id);
	return s;
}

/* A session with one key; the record borrows the binding. */
static struct store_session bound(const char *id, struct store_binding *b, const char *key)
{
	struct store_session s = session(id);

	*b = (struct store_binding){ .kind = "key" };
	snprintf(b->key, sizeof(b->key), "%s", key);
	s.bindings = b;
	s.nbindings = 1;
	return s;
}

static struct store_event event(const char *kind)
{
	struct store_event e = { .cause = { "asked", "because", "alice", 5000 } };

	snprintf(e.kind, sizeof(e.kind), "%s", kind);
	return e;
}

static int64_t last_event(struct store *st)
{
	struct err err;
	int64_t id = -1;

	return store_event_last(st, &id, &err) < 0 ? -1 : id;
}

#include "store_contract_session.h"
#include "store_contract_files.h"
#include "store_contract_users.h"

/* ---- reads do not write ----------------------------------------------------------------- */

static void reading_changes_nothing(void)
{
	struct store_binding b;
	struct store_session s = bound("s1", &b, "k"), got;
	struct store_session_list l;
	struct store_event_list evs;
	struct store_usage usage;
	int64_t before, last;

	OPEN();
	CHECK(!store_session_create(st, &s, NULL, &err));
	CHECK(store_changes(st) > 0);
	before = store_changes(st);
	CHECK(!store_session_get(st, "s1", &got, &err));
	store_session_fini(&got);
	CHECK(!store_session_find(st, "t", &b, &got, &err));
	store_session_fini(&got);
	CHECK(!store_session_list(st, &(struct store_session_filter){ 0 }, all, &l, &err));
	store_session_list_fini(&l);
	CHECK(!store_session_find_due(st, 1, 10, &l, &err));
	store_session_list_fini(&l);
	CHECK(!store_event_since(st, 0, NULL, NULL, 10, &evs, &err));
	store_event_list_fini(&evs);
	CHECK(!store_event_last(st, &last, &err));
	CHECK(!store_quota_usage(st, NULL, NULL, 1, &usage, &err));
	CHECK(store_changes(st) == before);
	CHECK(!store_session_update(st, &s, NULL, NULL, &err));
	CHECK(store_changes(st) > before);
}

/* ---- events -------------------------------------------------------------------------------- */

static void events_are_replayed_in_order_from_any_id(void)
{
	struct store_event_list l;
	int64_t from = 0;
	int n = 0;

	OPEN();
	for (int i = 0; i < 25; i++) {
		static char data[] = "{\"n\":1}";
		struct store_event e = event("tick");

		strcpy(e.tenant, i % 2 ? "t1" : "t2");
		strcpy(e.session, i % 5 ? "s1" : "s2");
		e.cause.at = 100 + i;
		e.data = i % 2 ? data : NULL;
		CHECK(!store_event_append(st, &e, &err) && e.id > from);
		from = e.id;
	}
	CHECK(last_event(st) == from);
	from = 0;
	do {
		CHECK(!store_event_since(st, from, NULL, NULL, 10, &l, &err));
		for (size_t i = 0; i < l.count; i++, n++)
			CHECK(l.items[i].cause.at == 100 + n && (n % 2 == 0) == !l.items[i].data);
		from = l.next;
		store_event_list_fini(&l);
	} while (from);
	CHECK(n == 25);
	CHECK(!store_event_since(st, 0, "t1", NULL, 100, &l, &err) && l.count == 12);
	store_event_list_fini(&l);
	CHECK(!store_event_since(st, 10, "t1", "s2", 100, &l, &err) && l.count == 1);
	store_event_list_fini(&l);
	CHECK(store_event_since(st, 0, "", NULL, 100, &l, &err) == -1 && err.code == ERR_INVALID);
}

static void an_event_id_is_never_used_twice(void)
{
	struct store_event e = event("tick");
	struct store_event_list l;
	int64_t id;

	OPEN();
	CHECK(!store_event_append(st, &e, &err) && !store_event_append(st, &e, &err));
	id = e.id;
	CHECK(!store_event_prune(st, 5000, &err)); /* the events are of 5000, so they stay */
	CHECK(!store_event_since(st, 0, NULL, NULL, 9, &l, &err) && l.count == 2);
	store_event_list_fini(&l);
	CHECK(!store_event_prune(st, 5001, &err) && last_event(st) == id);
	CHECK(!store_event_append(st, &e, &err) && e.id == id + 1);
}

/* ---- concurrency -------------------------------------------------------------------------- */

enum { RACERS = 100 };

struct race {
	struct store *st;
	pthread_mutex_t worker; /* one worker at a time calls a store */
	pthread_barrier_t start;
	int won, lost, updates;
};

static void *racer(void *arg)
{
	static int ids;
	struct race *r = arg;
	struct store_binding b;
	struct store_session s, now = { 0 };
	char id[16];
	struct err err;

	pthread_barrier_wait(&r->start);
	pthread_mutex_lock(&r->worker);
	snprintf(id, sizeof(id), "s%d", ids++);
	s = bound(id, &b, "one");
	if (store_session_create(r->st, &s, NULL, &err) == 0)
		r->won++;
	else
		r->lost += err.code == ERR_CONFLICT;
	pthread_mutex_unlock(&r->worker);

	/* All racers have the same session now. Each raises its generation once by compare-and-set.
	 */
	for (bool done = false; !done;) {
		pthread_mutex_lock(&r->worker);
		store_session_find(r->st, "t", &b, &now, &err);
		pthread_mutex_unlock(&r->worker);
		sched_yield();
		now.generation++;
		pthread_mutex_lock(&r->worker);
		done = store_session_update(r->st, &now, NULL, NULL, &err) == 0;
		r->updates += done;
		pthread_mutex_unlock(&r->worker);
		store_session_fini(&now);
	}
	return NULL;
}

static void of_a_hundred_creators_of_one_key_exactly_one_wins(void)
{
	pthread_t threads[RACERS];
	struct race r = { .worker = PTHREAD_MUTEX_INITIALIZER };
	struct store_binding b = { "key", "one" };
	struct store_session got;

	OPEN();
	r.st = st;
	pthread_barrier_init(&r.start, NULL, RACERS);
	for (int i = 0; i < RACERS; i++)
		pthread_create(&threads[i], NULL, racer, &r);
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&r.start);
	CHECK(r.won == 1 && r.lost == RACERS - 1 && r.updates == RACERS);
	CHECK(!store_session_find(st, "t", &b, &got, &err));
	CHECK(got.generation == RACERS && got.version == RACERS + 1);
	store_session_fini(&got);
	CHECK(count(st, (struct store_session_filter){ 0 }) == 1);
}

static void run_contract(void)
{
	run_contract_session();
	run_contract_files();
	run_contract_users();
	RUN(reading_changes_nothing);
	RUN(events_are_replayed_in_order_from_any_id);
	RUN(an_event_id_is_never_used_twice);
	RUN(of_a_hundred_creators_of_one_key_exactly_one_wins);
}

#endif
