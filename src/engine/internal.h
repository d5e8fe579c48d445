/* SPDX-License-Identifier: Apache-2.0 */
/* The engine from inside, for the files of this directory only.
 *
 * Locks, in the order in which they may be taken; none is held while waiting for a turn:
 *   machine.files_mutex         what is in a file and what becomes of it; over a few calls to
 * lodge-init a session's turn   (session_lock) one operation at a time changes a session; held over
 * slow work engine.mutex       the table of entries and what is published in them; held for moments
 *   machine.mutex         one sandbox's connection and commands; held for moments
 *   engine.store_mutex    the store: its calls never overlap
 *   engine.keeper.mutex  the keeper's connection
 *   engine.workers.mutex  the workers' queue
 * Who has a session's turn takes another's only by session_trylock(), or when the caller's own code
 * says why it cannot deadlock. */
#ifndef LODGE_ENGINE_INTERNAL_H
#define LODGE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/gate.h"
#include "sandbox/guest_exec.h"
#include "sandbox/home_dir.h"
#include "engine/engine.h"
#include "engine/engine_metrics.h"

struct session;
struct machine;
struct exec_handle;
struct keeper_client;

enum {
	SESSION_BUCKETS = 4096,
	SIDE_CONNS_MAX = 12, /* side connections of one sandbox; lodge-init takes 16 in all */
	ENGINE_STAGES_MAX = 64,
	ENVIRONMENT_REQUESTS_MAX = 64,
};

/* ---- entries: sessions somebody works with or whose sandbox lives -----------------------------
 */

struct session {
	struct session *next; /* of its bucket */
	struct engine *engine;
	char id[STORE_ID];
	unsigned refs; /* engine.mutex */
	bool locked; /* session_lock(); engine.mutex */
	pthread_cond_t unlocked;
	bool loaded;
	/* What the store has, plus activity that is not written yet. Read by whoever has the turn,
	 * or under engine.mutex; changed only by both together. */
	struct store_session rec;
	bool dirty; /* rec is ahead of the store in its timers */
	bool relaxed; /* its writes need not be synced yet: another one follows that is; likewise */
	bool stale; /* a write failed that may be in the store after all; with the session's lock */
	int64_t stored_due_at; /* due_at in the store while it is dirty */
	bool has_capacity; /* it counts among the engine's active ones */
	/* Whether the files of rec.layer became those of the live sandbox, or lie below them. */
	enum { LAYER_UNKNOWN, LAYER_TAKEN, LAYER_BELOW } layer_use;
	struct machine *machine; /* the connected sandbox; NULL: none. Changed like rec */
	unsigned probe_failures; /* probes in a row without an answer; with the session's lock */
	uint64_t cpu_us; /* of the sandbox when it was last due */
	int64_t cpu_sampled_at; /* when that was; 0: never */
	int64_t probe_failed_at; /* clock_mono_ms() of the last failed probe */
	int64_t retry_at; /* a timer failed for this session and runs again at this time */
};

/* Without waiting: 1, or 0 if somebody has the turn or there is no record. */
int session_trylock(struct engine *e, const char *id, struct session **ret);
void session_unlock(struct session *n); /* NULL is allowed */
DEFINE_AUTO(struct session *, session_unlock);

/* The record changed in *s (a copy made by store_session_copy) is written with an event of this
 * kind, and published. Steals *s on success. */
int session_update(struct session *n, struct store_session *s, const char *kind, struct err *err);
/* The same for session_record_move() and a write. `set` (may be NULL) changes the record in
 * between. */
typedef void session_edit_fn(struct store_session *s, void *arg);
/* Calls fn for every entry, under engine.mutex. */
typedef void session_each_fn(struct session *n, void *arg);

/* ---- live sandboxes -----------------------------------------------------------------------------
 */

struct machine {
	struct engine *engine;
	unsigned refs; /* machine.mutex */
	pthread_mutex_t mutex;
	pthread_mutex_t files_mutex; /* of side_conn_lock() */
	pthread_cond_t changed; /* an exec ended, a side connection was returned */
	char session[STORE_ID], tenant[STORE_NAME], sandbox[STORE_ID];
	int64_t incarnation;
	struct sandbox *conn; /* for execs; the pump dispatches it */
	bool gone; /* the connection ended: the sandbox is dead, or about to be */
	bool spare_shell; /* lodge-init was asked to keep a shell ready for the next exec */
	short events; /* what the pump polls for */
	struct exec_handle *execs; /* that have not ended */
	unsigned nexecs, nside_conns, nstreams; /* in use: with any of them it is not idle, */
	unsigned nreadonly_conns; /* except for these of the side connections */
	struct sandbox *idle_conns[SIDE_CONNS_MAX]; /* side connections kept for the next use */
	unsigned nidle_conns, nopen_conns; /* of side connections: kept; kept or in use */
	struct template spec; /* the template merged with the session's options */
	uint64_t uncounted_bytes; /* of output saved since the files were last counted */
	struct machine *next_removed; /* engine.mutex */
};

/* ---- the engine ---------------------------------------------------------------------------------
 */

struct single_flight;
struct job;
struct capacity_waiter;
struct layer_reservation;
struct layer_task;
struct start_progress;

/* Each file keeps its state of the engine in one struct. Without another note the fields belong to
 * engine.mutex. */

struct capacity {
	unsigned active; /* sandboxes that run or are being started */
	unsigned nwaiting; /* callers in the queue */
	struct capacity_waiter *queue; /* first in, first out */
	unsigned evicting; /* callers that hibernate a session at the moment */
	pthread_cond_t changed;
};

struct keeper_conn {
	pthread_mutex_t mutex; /* of the client */
	struct keeper_client *client; /* NULL: not started */
	atomic_bool start_failed; /* the last start of the keeper failed: */
	struct err start_error;
	struct keeper_pool_state pool; /* as the keeper last reported it */
};

enum { SCRATCH_MAX = 64 };

struct scratch { /* sandboxes that the timers have to destroy */
	char ids[SCRATCH_MAX][KEEPER_ID_SIZE];
	unsigned count;
};

struct machine_pump {
	int epoll_fd, wake_fd;
	pthread_t thread;
	bool running, stopping;
	struct machine *removed; /* to be released by the pump between two batches */
};

struct timers {
	pthread_t thread;
	bool running, stopping;
	pthread_cond_t wake;
	bool wake_requested;
	int64_t pruned_at, collected_at; /* engine_now() */
	bool collecting; /* a worker collects layers */
};

struct worker_pool {
	pthread_mutex_t mutex; /* of all of it, and of engine.exec_writes; taken last */
	pthread_t threads[2];
	unsigned nthreads;
	bool stopping;
	struct job *jobs, **jobs_tail;
	unsigned njobs; /* waiting or running */
	pthread_cond_t added, done;
};

struct exec_writes { /* workers.mutex */
	unsigned round;
	struct exec_handle *unwritten; /* execs that ended and are not fully recorded yet */
};

struct startup {
	pthread_t thread;
	bool has_thread, stopping;
	atomic_bool ready;
	bool requested; /* a caller waits for the next try */
	unsigned tries, nwaiting;
	struct err last_error;
	pthread_cond_t changed;
	engine_ready_fn *fn;
	void *arg;
};

struct environment_request {
	char template[STORE_ID]; /* "": free */
	bool due; /* not captured yet */
};

struct environment_requests {
	struct environment_request items[ENVIRONMENT_REQUESTS_MAX];
	unsigned nadded; /* ever */
	bool capturing; /* a worker captures one of them */
};

struct layers_state {
	struct layer_task *tasks; /* first in, first out */
	struct layer_reservation *reserved;
	int64_t checked_at; /* engine_now() when the files were last compared with the rows */
};

struct engine {
	struct engine_opts opts;
	char home[HOME_DIR_SIZE];
	pthread_mutex_t mutex;
	struct session *sessions[SESSION_BUCKETS];
	pthread_mutex_t store_mutex;
	struct store *store;
	int64_t epoch_ms; /* the wall clock when CLOCK_BOOTTIME was boot_ms */
	int64_t boot_ms;
	int output_dir; /* of saved exec output */
	struct gate name_locks; /* of name_lock(), and of single_flights */
	struct single_flight *single_flights;
	struct gate memory_gate; /* project/mem_gate.c */
	struct capacity capacity;
	struct keeper_conn keeper;
	struct scratch scratch;
	struct machine_pump pump;
	struct timers timers;
	struct worker_pool workers;
	struct exec_writes exec_writes;
	struct start_progress *progress;
	struct startup startup;
	struct engine_metrics metrics;
	struct environment_requests environments;
	struct layers_state layers;
};

int worker_pool_start(struct engine *e, struct err *err);
void worker_pool_stop(struct engine *e);
/* fn(arg) on a worker, soon; without threads at once. */
int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err);
void engine_wake_timers(struct engine *e); /* the sweeper looks now */
int id_generate(const char *prefix, char ret[STORE_ID],
		struct err *err); /* "ses_...", lower case */

/* The store; calls between the two. */
struct store *store_lock(struct engine *e) __attribute__((returns_nonnull));
void store_unlock(struct engine *e);
#define WITH_STORE(e, st) for (struct store *st = store_lock(e); st; store_unlock(e), st = NULL)
/* For what a power loss ends anyway: not synced by itself, see store.relax. */
struct store *store_lock_relaxed(struct engine *e) __attribute__((returns_nonnull));
void store_unlock_relaxed(struct engine *e);
#define WITH_STORE_RELAXED(e, st)                                                                  \
	for (struct store *st = store_lock_relaxed(e); st; store_unlock_relaxed(e), st = NULL)

/* ---- aside.c: sandboxes that belong to no session ---------------------------------------------
 */

enum keeper_presence {
	KEEPER_PRESENCE_NONE,
	KEEPER_PRESENCE_SANDBOX,
	KEEPER_PRESENCE_FILES
}; /* lives; only its files are there */
struct keeper_listing { /* sorted by id */
	struct keeper_listing_item {
		char id[KEEPER_ID_SIZE];
		enum keeper_what what;
	} * items;
	size_t count;
};

/* ---- life -------------------------------------------------------------------------------------
 */
/* All with the turn of n. */

/* A live sandbox for a session that has none: NONE, HIBERNATED or FAILED to ACTIVE. Makes room and
 * checks quotas first. */
struct resume_result {
	enum session_source source;
	uint64_t ready_us;
};

/* ---- starting -------------------------------------------------------------------------------- */
enum startup_stage { STARTUP_STORE = 1, STARTUP_KEEPER, STARTUP_ADOPT, STARTUP_READY };

/* The same in two steps, for who tells it to somebody else too. */
struct progress_state;

#endif
