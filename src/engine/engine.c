/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing, the clock, and the threads that work beside the callers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "sandbox/keeper_client.h"
#include "engine/internal.h"

struct job {
	struct job *next;
	void (*fn)(struct engine *e, void *arg);
	void *arg;
};

/* ---- time and names ---------------------------------------------------------------------------
 */

static int64_t clock_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t mono_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* The wall clock is read once; after that time passes as it does for CLOCK_BOOTTIME, so that a
 * clock set wrong, or right again, ends nobody's session. */
int64_t engine_now(struct engine *e)
{
	if (e->opts.clock)
		return e->opts.clock(e->opts.clock_arg);
	return e->epoch_ms + clock_ms(CLOCK_BOOTTIME) - e->boot_ms;
}

int64_t engine_extend_ms(const struct engine *e)
{
	return e->opts.extend_ms;
}

int id_new(const char *prefix, char ret[STORE_ID], struct err *err)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char r[20];
	size_t n = strlen(prefix);

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return err_sys(err, errno, "getrandom");
	memcpy(ret, prefix, n);
	for (size_t i = 0; i < sizeof(r); i++)
		ret[n + i] = set[r[i] % 32];
	ret[n + sizeof(r)] = '\0';
	return 0;
}

/* ---- the store --------------------------------------------------------------------------------
 */

struct store *db_lock(struct engine *e)
{
	pthread_mutex_lock(&e->db_mutex);
	return e->store;
}

void db_unlock(struct engine *e)
{
	pthread_mutex_unlock(&e->db_mutex);
}

struct store *db_lock_relaxed(struct engine *e)
{
	struct store *st = db_lock(e);

	st->relax(st, true);
	return st;
}

void db_unlock_relaxed(struct engine *e)
{
	e->store->relax(e->store, false);
	db_unlock(e);
}

int64_t engine_changes(struct engine *e)
{
	int64_t n = 0;

	DB (e, st)
		n = st->changes(st);
	return n;
}

/* ---- workers ------------------------------------------------------------------------------------
 */

static void *work(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->work_mutex);
	for (;;) {
		struct job *j = e->jobs;

		if (!j && e->work_ends)
			break;
		if (!j) {
			pthread_cond_wait(&e->work, &e->work_mutex);
			continue;
		}
		e->jobs = j->next;
		if (!e->jobs)
			e->jobs_tail = &e->jobs;
		pthread_mutex_unlock(&e->work_mutex);
		j->fn(e, j->arg);
		free(j);
		pthread_mutex_lock(&e->work_mutex);
		if (--e->njobs == 0)
			pthread_cond_broadcast(&e->worked);
	}
	pthread_mutex_unlock(&e->work_mutex);
	return NULL;
}

int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err)
{
	struct job *j;
	bool alone;

	pthread_mutex_lock(&e->work_mutex);
	alone = e->nworkers == 0 || e->work_ends;
	pthread_mutex_unlock(&e->work_mutex);
	if (alone) {
		fn(e, arg);
		return 0;
	}
	j = malloc(sizeof(*j));
	if (!j)
		return err_sys(err, ENOMEM, "work");
	*j = (struct job){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&e->work_mutex);
	*e->jobs_tail = j;
	e->jobs_tail = &j->next;
	e->njobs++;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->work_mutex);
	return 0;
}

static int workers_start(struct engine *e, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(e->workers); i++) {
		int r = pthread_create(&e->workers[i], NULL, work, e);

		if (r)
			return err_sys(err, r, "worker thread");
		pthread_mutex_lock(&e->work_mutex);
		e->nworkers++;
		pthread_mutex_unlock(&e->work_mutex);
	}
	return 0;
}

static void workers_stop(struct engine *e)
{
	pthread_mutex_lock(&e->work_mutex);
	e->work_ends = true;
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->work_mutex);
	for (unsigned i = 0; i < e->nworkers; i++)
		pthread_join(e->workers[i], NULL);
}

/* ---- open and close -------------------------------------------------------------------------- */

#define MINUTE INT64_C(60000)
#define HOUR INT64_C(3600000)
#define TEMPLATE_BYTES (16ull << 30)
#define DAY INT64_C(86400000)
#define WEEK INT64_C(604800000)
#define LIFETIME_MAX_MS INT64_C(18000000) /* 5 h */

static int64_t given(int64_t value, int64_t otherwise)
{
	return value ? value : otherwise;
}

static int64_t at_most(int64_t value, int64_t max)
{
	return value < max ? value : max;
}

static void take_defaults(struct engine_opts *o)
{
	o->queue_max = (unsigned)given(o->queue_max, 64);
	o->idle_max_ms = given(o->idle_max_ms, DAY);
	o->lifetime_max_ms = given(o->lifetime_max_ms, LIFETIME_MAX_MS);
	o->idle_ms = at_most(given(o->idle_ms, HOUR / 2), o->idle_max_ms);
	o->lifetime_ms = at_most(given(o->lifetime_ms, DAY), o->lifetime_max_ms);
	o->extend_ms = given(o->extend_ms, HOUR / 3);
	o->probe_ms = given(o->probe_ms, MINUTE / 4);
	o->probe_failures = (unsigned)given(o->probe_failures, 3);
	o->template_ms = given(o->template_ms, HOUR / 2);
	o->template_bytes = o->template_bytes ? o->template_bytes : TEMPLATE_BYTES;
	o->tombstones_ms = given(o->tombstones_ms, WEEK);
	o->execs_ms = given(o->execs_ms, WEEK);
	o->events_ms = given(o->events_ms, WEEK);
}

/* Timed waits are on the monotonic clock. */
static void cond_new(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

static struct engine *engine_alloc(const struct engine_opts *opts)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->opts = *opts;
	take_defaults(&e->opts);
	e->epoll = e->wake = e->logs = -1;
	e->jobs_tail = &e->jobs;
	e->epoch_ms = clock_ms(CLOCK_REALTIME);
	e->boot_ms = clock_ms(CLOCK_BOOTTIME);
	pthread_mutex_init(&e->mutex, NULL);
	pthread_mutex_init(&e->work_mutex, NULL);
	pthread_mutex_init(&e->db_mutex, NULL);
	pthread_mutex_init(&e->keep_mutex, NULL);
	cond_new(&e->flown);
	cond_new(&e->room);
	cond_new(&e->tick);
	cond_new(&e->work);
	cond_new(&e->worked);
	cond_new(&e->start.changed);
	return e;
}

static int open_dirs(struct engine *e, struct err *err)
{
	char path[HOME_SIZE + 8];

	if (home_find(e->opts.home, e->home, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/logs", e->home);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", path);
	e->logs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return e->logs < 0 ? err_sys(err, errno, "%s", path) : 0;
}

static int open_store(struct engine *e, struct err *err)
{
	char path[HOME_SIZE + 16];

	if (e->opts.forgetful)
		return store_open_memory(&e->store, err);
	snprintf(path, sizeof(path), "%s/lodge.db", e->home);
	return store_open_sqlite(path, e->opts.socket, &e->store, err);
}

/* The store first: it is what refuses a second engine, before anything is touched. */
int engine_prepare(const struct engine_opts *opts, struct engine **ret, struct err *err)
{
	auto_call(engine_close) struct engine *e = engine_alloc(opts);

	if (!e || progress_init(e) < 0)
		return err_sys(err, ENOMEM, "engine");
	start_stage(e, START_STORE, NULL);
	if (open_dirs(e, err) < 0 || open_store(e, err) < 0)
		return -1;
	if (pump_start(e, err) < 0)
		return -1;
	if (!e->opts.no_threads && workers_start(e, err) < 0)
		return -1;
	*ret = steal_ptr(&e);
	return 0;
}

int engine_open(const struct engine_opts *opts, struct engine **ret, struct err *err)
{
	auto_call(engine_close) struct engine *e = NULL;

	if (engine_prepare(opts, &e, err) < 0 || start_now(e, err) < 0)
		return -1;
	*ret = steal_ptr(&e);
	return 0;
}

static void let_go(struct entry *n, void *arg)
{
	struct live **list = arg;
	size_t i = 0;

	while (list[i])
		i++;
	list[i] = n->live;
	n->live = NULL;
}

static void count_live(struct entry *n, void *arg)
{
	*(size_t *)arg += n->live != NULL;
}

/* Connections go, sandboxes stay. */
static void close_lives(struct engine *e)
{
	size_t n = 0;
	auto_free struct live **list = NULL;

	entry_each(e, count_live, &n);
	list = calloc(n + 1, sizeof(void *));
	if (!list)
		return;
	entry_each(e, let_go, list);
	for (size_t i = 0; i < n; i++)
		live_leave(list[i]);
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	start_stop(e);
	sweep_stop(e);
	if (e->store) {
		entries_flush(e);
		runs_drain(e);
	}
	workers_stop(e);
	close_lives(e);
	pump_stop(e);
	entries_free(e);
	keeper_client_free(e->keeper);
	store_close(e->store);
	if (e->logs >= 0)
		close(e->logs);
	progress_fini(e);
	free(e);
}
