/* SPDX-License-Identifier: Apache-2.0 */
/* struct engine, for the engine's own layers. The surfaces include engine/engine.h.
 *
 * Locks, in the order in which they may be taken. Nothing but a gate, machine.files_mutex or
 * another session's lock (below) is held while waiting for a session's lock:
 *
 *   engine.name_locks     name_lock(), user_queue_*(), single_flight_*(); held over slow work
 *   machine.files_mutex   side_conn_lock(); held over a few calls to lodge-init
 *   session lock          session_lock(): one call at a time changes a session; over slow work
 *   engine.mutex          the table of sessions and their published fields; held for moments
 *   machine.mutex         one sandbox's connection and execs; held for moments
 *   engine.store_mutex    the store: its calls never overlap
 *   keeper_conn_lock()    the connection to the keeper; for one call
 *   engine.keeper.mutex   whether that is locked
 *   engine.keeper.enforcement_mutex  what the keeper enforces
 *   engine.workers.mutex  the workers' queue, and execs that are not recorded yet
 *   engine.progress.mutex the progress of a start
 *   gate.mutex            inside base/gate
 *   engine.load.mutex     what each tenant has taken
 *   engine.event_watches.mutex  the watchers of events; then only locks of src/http
 *
 * While holding one session's lock, take another only with session_trylock(), or say in the code
 * why it cannot deadlock. */
#ifndef LODGE_ENGINE_INTERNAL_H
#define LODGE_ENGINE_INTERNAL_H

#include "base/gate.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/disk_space.h"
#include "engine/engine_metrics.h"
#include "engine/environment_request.h"
#include "engine/event_watch.h"
#include "engine/id_generate.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"
#include "engine/start_progress.h"
#include "engine/store_lock.h"
#include "engine/tenant_load.h"
#include "engine/tenant_metrics.h"
#include "engine/worker_pool.h"
#include "sandbox/home_dir.h"

struct capacity_waiter;
struct exec_handle;
struct layer_reservation;
struct layer_task;
struct machine;
struct session;
struct single_flight;
struct switch_flight;

enum { SESSION_BUCKETS = 4096 };

/* State that a file of a higher layer keeps in the engine, one struct for each of them. Without
 * another note the fields belong to engine.mutex. */

/* session/capacity.c */
struct capacity {
	unsigned active; /* sandboxes that run or are being started */
	unsigned nwaiting; /* callers in the queue */
	struct capacity_waiter *queue; /* first in, first out */
	unsigned evicting; /* callers that hibernate a session at the moment */
	pthread_cond_t changed;
};

/* machine/machine_pump.c */
struct machine_pump {
	int epoll_fd, wake_fd;
	pthread_t thread;
	bool running;
	atomic_bool stopping;
	struct machine *removed; /* to be released by the pump between two batches */
};

/* machine/exec_record.c */
struct exec_writes { /* workers.mutex */
	unsigned round;
	struct exec_handle *unwritten; /* execs that ended and are not fully recorded yet */
};

/* layers/layers.c and layer_task.c */
struct layers_state {
	struct layer_task *tasks; /* first in, first out */
	struct layer_reservation *reserved;
	int64_t checked_at; /* engine_now() when the files were last compared with the rows */
};

/* service/timers.c */
struct timers {
	pthread_t thread;
	bool running, stopping;
	pthread_cond_t wake;
	bool wake_requested;
	int64_t pruned_at, collected_at; /* engine_now() */
	bool collecting; /* a worker collects layers */
	bool disk_was_full; /* at the last round */
};

/* service/startup.c */
struct startup {
	pthread_t thread;
	bool has_thread, stopping;
	atomic_bool ready;
	bool retrying; /* the last try failed, and another follows */
	bool requested; /* a caller waits for the next try */
	unsigned tries, nwaiting;
	struct err last_error;
	pthread_cond_t changed;
	engine_ready_fn *fn;
	void *arg;
};

struct engine {
	struct engine_opts opts;
	char home[HOME_DIR_SIZE];
	pthread_mutex_t mutex;
	struct session *sessions[SESSION_BUCKETS];
	pthread_mutex_t store_mutex;
	struct store *store;
	struct event_watches event_watches;
	_Atomic int64_t store_locked_at; /* clock_mono_ms(); 0: not locked, or at this moment */
	int64_t epoch_ms; /* the wall clock when CLOCK_BOOTTIME was boot_ms */
	int64_t boot_ms;
	char boot_id[STORE_ID]; /* of the running kernel; "" if it cannot be read */
	int output_dir; /* of saved exec output */
	struct gate name_locks; /* of name_lock(), and of single_flights */
	struct single_flight *single_flights;
	struct switch_flight *switches; /* project/switch_flight.c */
	struct gate memory_gate; /* project/mem_gate.c */
	struct capacity capacity;
	struct keeper_conn keeper;
	struct scratch scratch;
	struct machine_pump pump;
	struct timers timers;
	struct worker_pool workers;
	struct exec_writes exec_writes;
	struct start_progress progress;
	struct startup startup;
	struct engine_metrics metrics;
	struct tenant_metrics tenants;
	struct tenant_load load; /* has its own mutex */
	struct environment_requests environments;
	struct layers_state layers;
	struct disk_space disk;
};

#endif
