/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows all parts of an engine. */
#include "service/engine_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file_io.h"
#include "base/vec.h"
#include "engine/internal.h"
#include "engine/start_progress.h"
#include "machine/exec_record.h"
#include "machine/machine.h"
#include "machine/machine_pump.h"
#include "service/engine_opts.h"
#include "service/startup.h"
#include "service/timers.h"
#include "session/session.h"

enum { MEMORY_GATE_MAX = 8 }; /* fragments in memory at once */

/* Timed waits are on the monotonic clock. */
static void init_cond(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

static void read_boot_id(char ret[STORE_ID])
{
	ssize_t n = file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", ret, STORE_ID);

	ret[n > 0 ? strcspn(ret, "\n") : 0] = '\0';
}

static struct engine *engine_alloc(const struct engine_opts *opts)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->opts = *opts;
	e->pump.epoll_fd = e->pump.wake_fd = e->output_dir = -1;
	e->workers.jobs_tail = &e->workers.jobs;
	e->epoch_ms = clock_wall_ms();
	e->boot_ms = clock_boot_ms();
	read_boot_id(e->boot_id);
	pthread_mutex_init(&e->mutex, NULL);
	pthread_mutex_init(&e->workers.mutex, NULL);
	pthread_mutex_init(&e->store_mutex, NULL);
	pthread_mutex_init(&e->event_watches.mutex, NULL);
	pthread_mutex_init(&e->keeper.mutex, NULL);
	pthread_mutex_init(&e->keeper.enforcement_mutex, NULL);
	pthread_mutex_init(&e->progress.mutex, NULL);
	gate_init(&e->name_locks, &(struct gate_limits){ .per_key = 1 });
	gate_init(&e->memory_gate, &(struct gate_limits){ .total = MEMORY_GATE_MAX });
	tenant_load_init(&e->load, opts);
	init_cond(&e->capacity.changed);
	init_cond(&e->keeper.released);
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
	auto_call(engine_close) struct engine *e = NULL;
	struct engine_opts resolved = *opts;

	if (engine_opts_resolve(&resolved, err) < 0)
		return -1;
	e = engine_alloc(&resolved);
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
	tenant_load_fini(&e->load);
	gate_fini(&e->memory_gate);
	gate_fini(&e->name_locks);
	free(e);
}
