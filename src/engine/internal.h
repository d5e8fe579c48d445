/* SPDX-License-Identifier: Apache-2.0 */
/* The engine from inside, for the files of this directory only.
 *
 * Locks, in the order in which they may be taken; none is held while waiting for a turn:
 *   live.names         what is in a file and what becomes of it; over a few calls to lodge-init
 *   a session's turn   (session_lock) one operation at a time changes a session; held over slow
 * work engine.mutex       the table of entries and what is published in them; held for moments
 *   live.mutex         one sandbox's connection and commands; held for moments
 *   engine.store_mutex    the store: its calls never overlap
 *   engine.keeper_mutex  the keeper's connection
 *   engine.work_mutex  the workers' queue
 * Who has a session's turn takes another's only by session_trylock(), or when the caller's own code
 * says why it cannot deadlock. */
#ifndef LODGE_ENGINE_INTERNAL_H
#define LODGE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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
	bool busy; /* somebody has the turn; engine.mutex */
	pthread_cond_t turn;
	bool loaded;
	/* What the store has, plus activity that is not written yet. Read by whoever has the turn,
	 * or under engine.mutex; changed only by both together. */
	struct store_session rec;
	bool dirty; /* rec is ahead of the store in its timers */
	bool relaxed; /* its writes need not be synced yet: another one follows that is; likewise */
	bool doubtful; /* a write failed that may be in the store after all; whoever has the turn */
	int64_t written_due; /* due_at in the store while it is dirty */
	bool room; /* it counts among the engine's active ones */
	/* Whether the files of rec.layer became those of the live sandbox, or lie below them. */
	enum { LAYER_UNKNOWN, LAYER_TAKEN, LAYER_BELOW } taken;
	struct machine *live; /* the sandbox, connected; NULL: none. Changed like rec */
	unsigned failures; /* probes in a row without an answer; whoever has the turn */
	uint64_t cpu_us; /* of the sandbox when it was last due */
	int64_t cpu_at; /* when that was; 0: never */
	int64_t failed_at; /* clock_mono_ms() of the last of the failures */
	int64_t again_at; /* the sweep failed with it and waits until then */
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
	unsigned refs; /* live.mutex */
	pthread_mutex_t mutex;
	pthread_mutex_t names; /* of side_conn_lock() */
	pthread_cond_t changed; /* a command ended, a loan came back */
	char session[STORE_ID], tenant[STORE_NAME], sandbox[STORE_ID];
	int64_t incarnation;
	struct sandbox *main; /* for commands; the pump dispatches it */
	bool gone; /* the connection ended: the sandbox is dead, or about to be */
	bool spare_shell; /* lodge-init was asked to keep one bash ready */
	short events; /* what the pump polls for */
	struct exec_handle *runs; /* commands that have not ended */
	unsigned nexecs, nside_conns, nstreams; /* what keeps it from being idle, */
	unsigned nreadonly_conns; /* but for these of the loans */
	struct sandbox *spare[SIDE_CONNS_MAX]; /* side connections nobody has */
	unsigned nspare, nside;
	struct template spec; /* template and session's own, merged */
	uint64_t saved; /* bytes of output since they were last counted */
	struct machine *next_removed; /* engine.mutex */
};

/* ---- the engine ---------------------------------------------------------------------------------
 */

struct single_flight;
struct job;
struct waiter;

struct environment_request {
	char template[STORE_ID]; /* empty: this place is free */
	bool due; /* nobody looked since */
};

enum { SCRATCH_MAX = 64 };

struct engine {
	struct engine_opts opts;
	char home[HOME_DIR_SIZE];
	pthread_mutex_t mutex;
	struct session *buckets[SESSION_BUCKETS];
	struct single_flight *flights;
	pthread_cond_t flown;
	unsigned active; /* sandboxes that live or are being made */
	unsigned waiting; /* callers in the queue for room */
	struct waiter *queue; /* room.c: the first is served first */
	unsigned making; /* of them make room for themselves at the moment */
	pthread_cond_t room;

	pthread_mutex_t store_mutex;
	struct store *store;
	pthread_mutex_t keeper_mutex;
	char aside[SCRATCH_MAX][KEEPER_ID_SIZE]; /* to be ended by the sweep; mutex */
	unsigned naside;
	struct keeper_client *keeper;
	atomic_bool keeper_failed; /* it could not be started the last time: */
	struct err keeper_error; /* mutex */

	int64_t epoch_ms; /* of the clock when CLOCK_BOOTTIME was boot_ms */
	int64_t boot_ms;

	int epoll, wake; /* of the pump */
	pthread_t pump, sweeper, workers[2];
	bool has_pump, has_sweeper, pump_ends, sweep_ends;
	struct machine *removed; /* by the pump, once it is between two batches */
	unsigned nworkers;
	pthread_cond_t tick; /* the sweeper sleeps here */
	bool poked;
	pthread_mutex_t work_mutex; /* of what follows; taken last of all */
	bool work_ends;
	struct job *jobs, **jobs_tail; /* for the workers */
	unsigned njobs; /* waiting or running */
	pthread_cond_t work, worked;
	int64_t pruned_at, collected_at; /* engine_now() of the sweep */
	bool collecting; /* a worker is at it */
	int logs; /* directory of kept output */
	void *stages; /* progress.c */
	struct { /* start.c; mutex */
		pthread_t thread;
		bool has_thread, ends;
		atomic_bool ready;
		bool wanted; /* somebody waits */
		unsigned tries, waiting;
		struct err last; /* failure */
		pthread_cond_t changed;
		engine_ready_fn *fn;
		void *arg;
	} start;
	struct engine_metrics numbers;
	struct keeper_pool_state pool; /* as it was last told; mutex */
	struct environment_request
		environment_requests[ENVIRONMENT_REQUESTS_MAX]; /* environment.c; mutex */
	unsigned nenvironment_requests; /* that there ever were */
	bool looking; /* a worker is at one of them; mutex */
	unsigned write_round;
	struct exec_handle
		*unwritten; /* runs.c: ended, not all of it written down yet; work_mutex */
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

/* template + what the session says over it, merged, and no more than its policy allows. *ret is for
 * template_fini(). */
int spec_load(struct engine *e, const struct store_session *s, struct template *ret,
	      struct err *err);

/* ---- starting -------------------------------------------------------------------------------- */
enum startup_stage { STARTUP_STORE = 1, STARTUP_KEEPER, STARTUP_ADOPT, STARTUP_READY };

/* The same in two steps, for who tells it to somebody else too. */
struct progress_state;

#endif
