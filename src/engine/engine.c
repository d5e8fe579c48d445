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
#include "base/clock.h"
#include "sandbox/keeper_client.h"
#include "engine/internal.h"

struct job {
	struct job *next;
	void (*fn)(struct engine *e, void *arg);
	void *arg;
};

/* ---- time and names ---------------------------------------------------------------------------
 */

/* The wall clock is read once; after that time passes as it does for CLOCK_BOOTTIME, so that a
 * clock set wrong, or right again, ends nobody's session. */
int64_t engine_now(struct engine *e)
{
	if (e->opts.clock)
		return e->opts.clock(e->opts.clock_arg);
	return e->epoch_ms + clock_boot_ms() - e->boot_ms;
}

int64_t engine_extend_ms(const struct engine *e)
{
	return e->opts.extend_ms;
}

int id_generate(const char *prefix, char ret[STORE_ID], struct err *err)
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

struct store *store_lock(struct engine *e)
{
	pthread_mutex_lock(&e->store_mutex);
	return e->store;
}

void store_unlock(struct engine *e)
{
	pthread_mutex_unlock(&e->store_mutex);
}

struct store *store_lock_relaxed(struct engine *e)
{
	struct store *st = store_lock(e);

	store_relax(st, true);
	return st;
}

void store_unlock_relaxed(struct engine *e)
{
	store_relax(e->store, false);
	store_unlock(e);
}

int64_t engine_changes(struct engine *e)
{
	int64_t n = 0;

	WITH_STORE(e, st)
	n = store_changes(st);
	return n;
}

/* ---- workers ------------------------------------------------------------------------------------
 */

static void *work(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->workers.mutex);
	for (;;) {
		struct job *j = e->workers.jobs;

		if (!j && e->workers.stopping)
			break;
		if (!j) {
			pthread_cond_wait(&e->workers.added, &e->workers.mutex);
			continue;
		}
		e->workers.jobs = j->next;
		if (!e->workers.jobs)
			e->workers.jobs_tail = &e->workers.jobs;
		pthread_mutex_unlock(&e->workers.mutex);
		j->fn(e, j->arg);
		free(j);
		pthread_mutex_lock(&e->workers.mutex);
		if (--e->workers.njobs == 0)
			pthread_cond_broadcast(&e->workers.done);
	}
	pthread_mutex_unlock(&e->workers.mutex);
	return NULL;
}

int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err)
{
	struct job *j;
	bool alone;

	pthread_mutex_lock(&e->workers.mutex);
	alone = e->workers.nthreads == 0 || e->workers.stopping;
	pthread_mutex_unlock(&e->workers.mutex);
	if (alone) {
		fn(e, arg);
		return 0;
	}
	j = malloc(sizeof(*j));
	if (!j)
		return err_sys(err, ENOMEM, "work");
	*j = (struct job){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&e->workers.mutex);
	*e->workers.jobs_tail = j;
	e->workers.jobs_tail = &j->next;
	e->workers.njobs++;
	pthread_cond_signal(&e->workers.added);
	pthread_mutex_unlock(&e->workers.mutex);
	return 0;
}

int worker_pool_start(struct engine *e, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(e->workers.threads); i++) {
		int r = pthread_create(&e->workers.threads[i], NULL, work, e);

		if (r)
			return err_sys(err, r, "worker thread");
		pthread_mutex_lock(&e->workers.mutex);
		e->workers.nthreads++;
		pthread_mutex_unlock(&e->workers.mutex);
	}
	return 0;
}

void worker_pool_stop(struct engine *e)
{
	pthread_mutex_lock(&e->workers.mutex);
	e->workers.stopping = true;
	pthread_cond_broadcast(&e->workers.added);
	pthread_mutex_unlock(&e->workers.mutex);
	for (unsigned i = 0; i < e->workers.nthreads; i++)
		pthread_join(e->workers.threads[i], NULL);
}

void engine_wake_timers(struct engine *e)
{
	pthread_mutex_lock(&e->mutex);
	e->timers.wake_requested = true;
	pthread_cond_signal(&e->timers.wake);
	pthread_mutex_unlock(&e->mutex);
}
