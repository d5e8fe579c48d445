/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows all parts of an engine. */
#include "service/engine_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/vec.h"
#include "engine/internal.h"
#include "engine/start_progress.h"
#include "machine/exec_record.h"
#include "machine/machine.h"
#include "machine/machine_pump.h"
#include "service/startup.h"
#include "service/timers.h"
#include "session/session.h"

#define MINUTE INT64_C(60000)
#define HOUR INT64_C(3600000)
#define TEMPLATE_BYTES (16ull << 30)
#define DAY INT64_C(86400000)
#define WEEK INT64_C(604800000)
enum { MEMORY_GATE_MAX = 8 }; /* fragments in memory at once */

#define LIFETIME_MAX_MS INT64_C(18000000) /* 5 h */

static int64_t value_or(int64_t value, int64_t otherwise)
{
	return value ? value : otherwise;
}

static int64_t at_most(int64_t value, int64_t max)
{
	return value < max ? value : max;
}

static void set_defaults(struct engine_opts *o)
{
	o->queue_max = (unsigned)value_or(o->queue_max, 64);
	o->idle_max_ms = value_or(o->idle_max_ms, DAY);
	o->lifetime_max_ms = value_or(o->lifetime_max_ms, LIFETIME_MAX_MS);
	o->idle_ms = at_most(value_or(o->idle_ms, HOUR / 2), o->idle_max_ms);
	o->lifetime_ms = at_most(value_or(o->lifetime_ms, DAY), o->lifetime_max_ms);
	o->extend_ms = value_or(o->extend_ms, HOUR / 3);
	o->probe_ms = value_or(o->probe_ms, MINUTE / 4);
	o->probe_failures = (unsigned)value_or(o->probe_failures, 3);
	o->template_ms = value_or(o->template_ms, HOUR / 2);
	o->template_bytes = o->template_bytes ? o->template_bytes : TEMPLATE_BYTES;
	o->tombstones_ms = value_or(o->tombstones_ms, WEEK);
	o->execs_ms = value_or(o->execs_ms, WEEK);
	o->events_ms = value_or(o->events_ms, WEEK);
}

/* Timed waits are on the monotonic clock. */
static void init_cond(pthread_cond_t *c)
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
	set_defaults(&e->opts);
	e->pump.epoll_fd = e->pump.wake_fd = e->output_dir = -1;
	e->workers.jobs_tail = &e->workers.jobs;
	e->epoch_ms = clock_wall_ms();
	e->boot_ms = clock_boot_ms();
	pthread_mutex_init(&e->mutex, NULL);
	pthread_mutex_init(&e->workers.mutex, NULL);
	pthread_mutex_init(&e->store_mutex, NULL);
	pthread_mutex_init(&e->keeper.mutex, NULL);
	pthread_mutex_init(&e->progress.mutex, NULL);
	gate_init(&e->name_locks, &(struct gate_limits){ .per_key = 1 });
	gate_init(&e->memory_gate, &(struct gate_limits){ .total = MEMORY_GATE_MAX });
	init_cond(&e->capacity.changed);
	init_cond(&e->timers.wake);
	init_cond(&e->workers.added);
	init_cond(&e->workers.done);
	init_cond(&e->startup.changed);
	return e;
}

static int open_home(struct engine *e, struct err *err)
{
	char path[HOME_DIR_SIZE + 16];

	if (home_dir_find(e->opts.home, e->home, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/logs", e->home);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", path);
	e->output_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (e->output_dir < 0)
		return err_sys(err, errno, "%s", path);
	snprintf(path, sizeof(path), "%s/lodge.db", e->home);
	return store_open_sqlite(path, e->opts.socket, &e->store, err);
}

/* The store first: it is what refuses a second engine, before anything is touched. */
int engine_open_store(const struct engine_opts *opts, struct engine **ret, struct err *err)
{
	auto_call(engine_close) struct engine *e = engine_alloc(opts);

	if (!e)
		return err_sys(err, ENOMEM, "engine");
	startup_report(e, STARTUP_STORE, NULL);
	if (open_home(e, err) < 0 || machine_pump_start(e, err) < 0 ||
	    (!e->opts.no_threads && worker_pool_start(e, err) < 0))
		return -1;
	*ret = steal_ptr(&e);
	return 0;
}

int engine_open(const struct engine_opts *opts, struct engine **ret, struct err *err)
{
	auto_call(engine_close) struct engine *e = NULL;

	if (engine_open_store(opts, &e, err) < 0 || startup_run(e, err) < 0)
		return -1;
	*ret = steal_ptr(&e);
	return 0;
}

struct machines {
	struct machine **items;
	size_t count;
};

static void take_machine(struct session *n, void *arg)
{
	struct machines *l = arg;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the items are pointers */
	struct machine **added = n->machine ? vec_push(&l->items, &l->count, SIZE_MAX) : NULL;

	if (added)
		*added = steal_ptr(&n->machine);
}

/* Connections go, sandboxes stay. */
static void detach_machines(struct engine *e)
{
	struct machines l = { 0 };

	session_each(e, take_machine, &l);
	for (size_t i = 0; i < l.count; i++)
		machine_detach(l.items[i]);
	free(l.items);
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	startup_stop(e);
	timers_stop(e);
	if (e->store) {
		sessions_flush(e);
		exec_write_ended(e, true);
	}
	worker_pool_stop(e);
	detach_machines(e);
	machine_pump_stop(e);
	sessions_free(e);
	keeper_client_free(e->keeper.client);
	store_close(e->store);
	if (e->output_dir >= 0)
		close(e->output_dir);
	gate_fini(&e->memory_gate);
	gate_fini(&e->name_locks);
	free(e);
}
