/* SPDX-License-Identifier: Apache-2.0 */
/* The engine from inside, for the files of this directory only.
 *
 * Locks, in the order in which they may be taken; none is held while waiting for a turn:
 *   live.names         what is in a file and what becomes of it; over a few calls to lodge-init
 *   a session's turn   (entry_take) one operation at a time changes a session; held over slow work
 *   engine.mutex       the table of entries and what is published in them; held for moments
 *   live.mutex         one sandbox's connection and commands; held for moments
 *   engine.db_mutex    the store: its calls never overlap
 *   engine.keep_mutex  the keeper's connection
 *   engine.work_mutex  the workers' queue
 * Who has a session's turn takes another's only by entry_try(), or when the caller's own code says
 * why it cannot deadlock. */
#ifndef LODGE_ENGINE_INTERNAL_H
#define LODGE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "sandbox/guest_exec.h"
#include "sandbox/home_dir.h"
#include "engine/engine.h"
#include "engine/engine_metrics.h"

struct entry;
struct live;
struct run;
struct keeper_client;

enum {
	ENTRY_BUCKETS = 4096,
	LIVE_LOANS_MAX = 12, /* side connections of one sandbox; lodge-init takes 16 in all */
	ENGINE_STAGES_MAX = 64,
	ENGINE_WISHES_MAX = 64,
};

/* ---- entries: sessions somebody works with or whose sandbox lives -----------------------------
 */

struct entry {
	struct entry *next; /* of its bucket */
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
	struct live *live; /* the sandbox, connected; NULL: none. Changed like rec */
	unsigned failures; /* probes in a row without an answer; whoever has the turn */
	uint64_t cpu_us; /* of the sandbox when it was last due */
	int64_t cpu_at; /* when that was; 0: never */
	int64_t failed_at; /* mono_ms() of the last of the failures */
	int64_t again_at; /* the sweep failed with it and waits until then */
};

/* Waits for the turn. ERR_NOT_FOUND: no such record (or of another tenant, with tenant not NULL);
 * ERR_UNAVAILABLE: somebody had it for too long. entry_give() ends it. */
int entry_take(struct engine *e, const char *tenant, const char *id, struct entry **ret,
	       struct err *err);
/* The same by id or key; the tombstone's sentence if it is gone. */
int entry_find(struct engine *e, const struct caller *who, const struct session_ref *ref,
	       struct entry **ret, struct err *err);
/* The same, and the session is settled: its state is at rest or live, and true. */
int entry_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      int64_t if_version, struct entry **ret, struct err *err);
/* Sentences for what is not there, and the reason if it was. */
void ref_say_unknown(const struct session_ref *ref, struct err *err);
void ref_say_gone(struct engine *e, const struct caller *who, const struct session_ref *ref,
		  struct err *err);

static inline int ref_unknown(const struct session_ref *ref, struct err *reterr)
{
	ref_say_unknown(ref, reterr);
	return -1;
}

static inline int ref_gone(struct engine *e, const struct caller *who,
			   const struct session_ref *ref, struct err *reterr)
{
	ref_say_gone(e, who, ref, reterr);
	return -1;
}

int ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err);
/* Without waiting: 1, or 0 if somebody has the turn or there is no record. */
int entry_try(struct engine *e, const char *id, struct entry **ret);
void entry_give(struct entry *n); /* NULL is allowed */
DEFINE_AUTO(struct entry *, entry_give);
/* A fresh session: its record is written with `ev`; the turn is the caller's. Steals *s. */
int entry_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		 bool relaxed, struct entry **ret, struct err *err);

/* The record changed in *s (a copy made by store_session_copy) is written with an event of this
 * kind, and published. Steals *s on success. */
int entry_write(struct entry *n, struct store_session *s, const char *kind, struct err *err);
/* The same for what somebody asked for: the event names the actor. */
int entry_change(struct entry *n, struct store_session *s, const char *kind, const char *actor,
		 struct err *err);
/* The same for session_move() and a write. `set` (may be NULL) changes the record in between. */
typedef void entry_set_fn(struct store_session *s, void *arg);
int entry_move(struct entry *n, enum session_event ev, const struct session_why *why,
	       entry_set_fn *set, void *arg, struct err *err);
/* Pushes the timers; written only when the store lags far enough behind. */
void entry_touch(struct entry *n);
int entry_flush(struct entry *n, struct err *err); /* writes it if it is dirty */
/* Reads the record again: somebody wrote it directly (rebind). */
int entry_reload(struct entry *n, struct err *err);
void entry_forget(struct entry *n); /* the record is removed */
void entry_set_live(struct entry *n, struct live *live);
/* Copies the published record of a session nobody has to have the turn of; 0 if there is no entry.
 */
int entry_peek(struct engine *e, const char *id, struct store_session *ret);
void entries_flush(struct engine *e); /* whatever is dirty */
void entries_free(struct engine *e);
/* Calls fn for every entry, under engine.mutex. */
typedef void entry_each_fn(struct entry *n, void *arg);
void entry_each(struct engine *e, entry_each_fn *fn, void *arg);

/* ---- live sandboxes -----------------------------------------------------------------------------
 */

struct live {
	struct engine *engine;
	unsigned refs; /* live.mutex */
	pthread_mutex_t mutex;
	pthread_mutex_t names; /* of session_loan_lock() */
	pthread_cond_t changed; /* a command ended, a loan came back */
	char session[STORE_ID], tenant[STORE_NAME], sandbox[STORE_ID];
	int64_t incarnation;
	struct sandbox *main; /* for commands; the pump dispatches it */
	bool gone; /* the connection ended: the sandbox is dead, or about to be */
	bool armed; /* a shell was asked to wait for the usual command */
	short events; /* what the pump polls for */
	struct run *runs; /* commands that have not ended */
	unsigned nruns, nloans, nstreams; /* what keeps it from being idle, */
	unsigned npeeks; /* but for these of the loans */
	struct sandbox *spare[LIVE_LOANS_MAX]; /* side connections nobody has */
	unsigned nspare, nside;
	struct template spec; /* template and session's own, merged */
	uint64_t saved; /* bytes of output since they were last counted */
	struct live *next_removed; /* engine.mutex */
};

/* Takes over `sb`, also on failure. Commands of an earlier engine are taken up (runs_adopt). */
int live_new(struct entry *n, struct sandbox *sb, bool adopted, struct live **ret, struct err *err);
/* The sandbox is being ended: commands are told, the pump lets go. The caller's reference goes. */
void live_close(struct live *v);
struct live *live_ref(struct live *v);
void live_unref(struct live *v);
/* The engine goes, the sandbox stays. The caller's reference goes. */
void live_leave(struct live *v);
DEFINE_AUTO(struct live *, live_unref);
bool live_is_gone(struct live *v);
/* With the turn nobody borrows anew; waits until what is lent out came back. Whole seconds. */
bool live_quiet(struct live *v, int64_t wait_ms);
unsigned live_busy(struct live *v); /* commands, loans, open streams */
/* What the sandbox said goes to those who wait for it. True: that was its end. With live.mutex. */
bool live_hear(struct live *v);
void live_rearm(struct live *v); /* after anything was sent; with live.mutex */

int pump_start(struct engine *e, struct err *err);
void pump_stop(struct engine *e);
int pump_add(struct engine *e, struct live *v, struct err *err);
void pump_remove(struct engine *e, struct live *v);

/* ---- runs.c: commands -------------------------------------------------------------------------
 */
/* Takes up what an earlier engine started; called before the pump has the connection. */
int runs_adopt(struct live *v, struct err *err);
/* The sandbox is gone: every command that has not ended did now. With live.mutex. */
void runs_end(struct live *v);
/* The engine goes and the commands stay: handles are dropped, nothing is recorded. With live.mutex,
 * or before anybody else knows it. */
void runs_leave(struct live *v);
/* Writes down what ended and is not written yet; waits for it. */
void runs_drain(struct engine *e);
/* The same for what could not be written before; waits for nobody. */
void runs_retry(struct engine *e);
/* The output kept of a session's commands goes. */
void runs_forget(struct engine *e, const char *session);
void runs_prune(struct engine *e, int64_t before);

/* ---- the engine ---------------------------------------------------------------------------------
 */

struct flight;
struct job;
struct waiter;

struct environment_wish {
	char template[STORE_ID]; /* empty: this place is free */
	bool due; /* nobody looked since */
};

enum { ASIDE_MAX = 64 };

struct engine {
	struct engine_opts opts;
	char home[HOME_SIZE];
	pthread_mutex_t mutex;
	struct entry *buckets[ENTRY_BUCKETS];
	struct flight *flights;
	pthread_cond_t flown;
	unsigned active; /* sandboxes that live or are being made */
	unsigned waiting; /* callers in the queue for room */
	struct waiter *queue; /* room.c: the first is served first */
	unsigned making; /* of them make room for themselves at the moment */
	pthread_cond_t room;

	pthread_mutex_t db_mutex;
	struct store *store;
	pthread_mutex_t keep_mutex;
	char aside[ASIDE_MAX][KEEPER_ID_SIZE]; /* to be ended by the sweep; mutex */
	unsigned naside;
	struct keeper_client *keeper;
	atomic_bool keeper_failed; /* it could not be started the last time: */
	struct err keeper_error; /* mutex */

	int64_t epoch_ms; /* of the clock when CLOCK_BOOTTIME was boot_ms */
	int64_t boot_ms;

	int epoll, wake; /* of the pump */
	pthread_t pump, sweeper, workers[2];
	bool has_pump, has_sweeper, pump_ends, sweep_ends;
	struct live *removed; /* by the pump, once it is between two batches */
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
		engine_begun_fn *fn;
		void *arg;
	} start;
	struct engine_numbers numbers;
	struct keeper_pool_state pool; /* as it was last told; mutex */
	struct environment_wish wishes[ENGINE_WISHES_MAX]; /* environment.c; mutex */
	unsigned nwishes; /* that there ever were */
	bool looking; /* a worker is at one of them; mutex */
	unsigned write_round;
	struct run *unwritten; /* runs.c: ended, not all of it written down yet; work_mutex */
};

int64_t clock_ms(clockid_t id);
int64_t mono_ms(void);
int workers_start(struct engine *e, struct err *err);
void workers_stop(struct engine *e);
/* fn(arg) on a worker, soon; without threads at once. */
int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err);
void engine_poke(struct engine *e); /* the sweeper looks now */
int id_new(const char *prefix, char ret[STORE_ID], struct err *err); /* "ses_...", lower case */

/* The store; calls between the two. */
struct store *db_lock(struct engine *e) __attribute__((returns_nonnull));
void db_unlock(struct engine *e);
#define DB(e, st) for (struct store *st = db_lock(e); st; db_unlock(e), st = NULL)
/* For what a power loss ends anyway: not synced by itself, see store.relax. */
struct store *db_lock_relaxed(struct engine *e) __attribute__((returns_nonnull));
void db_unlock_relaxed(struct engine *e);
#define DB_RELAXED(e, st)                                                                          \
	for (struct store *st = db_lock_relaxed(e); st; db_unlock_relaxed(e), st = NULL)

/* The keeper; starts one if there is none or the last one died. NULL with err set. */
struct keeper_client *keep_lock(struct engine *e, struct err *err);
struct keeper_pool keep_pool(const struct engine *e); /* that it is asked for */
void keep_unlock(struct engine *e);
/* ---- aside.c: sandboxes that belong to no session ---------------------------------------------
 */

/* ret_features may be NULL. */
int aside_make(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
	       struct sandbox **ret, struct err *err);
void aside_unmake(struct engine *e, struct sandbox *sb); /* NULL is allowed */
void aside_sweep(struct engine *e);

/* One that died is replaced: it may have left a sandbox frozen, which its successor thaws. */
void keep_mind(struct engine *e);
/* One request without descriptors; ret may be NULL. */
int keep_call(struct engine *e, const struct keeper_request *req, struct keeper_reply *ret,
	      struct err *err);
/* One call each, by the id of a sandbox or layer. */
int keep_stats(struct engine *e, const char *sandbox, struct keeper_stats *ret, struct err *err);
int keep_stop(struct engine *e, const char *sandbox, struct err *err);
int keep_destroy(struct engine *e, const char *sandbox, struct err *err);
/* Waits until its processes are gone. */
int keep_seal(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
	      struct err *err);
/* Waits for the copy where it is one. */
int keep_snap(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
	      uint64_t *ret_bytes, struct err *err);
/* Waits for a job that was started under this name. */
int keep_job(struct engine *e, const char *name, uint64_t *ret_bytes, struct err *err);
enum keep_has { KEEP_NOTHING, KEEP_SANDBOX, KEEP_FILES }; /* lives; only its files are there */
struct keep_list { /* sorted by id */
	struct keep_item {
		char id[KEEPER_ID_SIZE];
		enum keeper_what what;
	} * items;
	size_t count;
};
int keep_list(struct engine *e, struct keep_list *ret, struct err *err);
void keep_list_fini(struct keep_list *l);
enum keep_has keep_list_sandbox(const struct keep_list *l, const char *id);
bool keep_list_layer(const struct keep_list *l, const char *id);

/* ---- life -------------------------------------------------------------------------------------
 */
/* All with the turn of n. */

/* A live sandbox for a session that has none: NONE, HIBERNATED or FAILED to ACTIVE. Makes room and
 * checks quotas first. */
struct wake_result {
	enum session_source source;
	uint64_t ready_us;
};
int wake(struct entry *n, const struct session_why *why, int64_t wait_ms, struct wake_result *ret,
	 struct err *err);
/* A new session: within the quotas, with its record; unless `asleep` its start is noted, and
 * wake_restore() comes next. The turn is the caller's. Steals *s on success. */
int wake_new(struct engine *e, struct store_session *s, const struct store_event *ev,
	     const struct session_why *why, bool asleep, struct entry **ret, struct err *err);
/* Like wake() for one that was moved to RESTORING already (rollback). */
int wake_restore(struct entry *n, struct wake_result *ret, struct err *err);
/* ACTIVE to HIBERNATED: also for one whose sandbox was found gone. */
int sleep_now(struct entry *n, const struct session_why *why, struct err *err);
/* The second half of it, from HIBERNATING: stop, seal, record. */
int sleep_finish(struct entry *n, const struct session_why *why, struct err *err);
/* From whatever a crash, a failure or the death of the sandbox left to a state at rest or live. */
int settle(struct entry *n, struct err *err);
/* Of one that was PROVISIONING or RESTORING: the sandbox goes, and the files are where they were
 * before. Until it succeeds the record must go on naming the sandbox. */
int put_back(struct entry *n, struct err *err);
/* What lies below the writable files of its sandbox: "" if nothing does. */
int base_layer(struct entry *n, char ret[STORE_ID], struct err *err);
/* What it used of the processors goes to its user's account, before it is ended. */
void charge(struct entry *n);
/* Its sandbox is over: the connection and its place among the active ones go. */
void end_live(struct entry *n);
/* Connects to the sandbox that the record names and an earlier engine made. */
int live_adopt(struct entry *n, struct err *err);
/* The processes of its sandbox; the record is not touched. */
int freeze(struct entry *n, bool frozen, struct err *err);
/* Thaws it if it is paused. */
int unpause(struct entry *n, const char *actor, struct err *err);
/* Tombstone, end, removal; the entry is empty afterwards. */
int destroy_now(struct entry *n, const struct session_why *why, struct err *err);
/* The second half, from DESTROYING. */
int destroy_finish(struct entry *n, struct err *err);
/* Whether anything happens inside without anybody connected: processes, cpu time. */
bool is_working(struct entry *n);
/* FAILED with a sandbox that lives after all: ACTIVE again, with the deadlines it had. */
int revive(struct entry *n, struct err *err);

/* The layers of a stack, topmost first: ids into ret, at most KEEPER_LAYERS_MAX. */
int layers_of(struct engine *e, const char *top, char (*ret)[STORE_ID], size_t *ret_count,
	      struct err *err);
/* template + what the session says over it, merged, and no more than its policy allows. *ret is for
 * template_fini(). */
int spec_load(struct engine *e, const struct store_session *s, struct template *ret,
	      struct err *err);
/* The limits of that. */
int spec_limits(struct engine *e, const struct store_session *s, struct limits *ret,
		struct err *err);
/* The template that its files lie on, which is its own one unless that is made of a layer. */
int spec_base(struct engine *e, const struct store_session *s, char ret[STORE_ID], struct err *err);
/* Of one that is about to get a sandbox: its template and policy may say something else than they
 * did the last time. */
int spec_refresh(struct entry *n, struct err *err);

/* ---- room, quotas ---------------------------------------------------------------------------- */
/* One more live sandbox: hibernates the longest idle, queues up to wait_ms, or refuses with sys
 * EAGAIN. room_give() when it ended or was not made. */
int room_take(struct engine *e, int64_t wait_ms, struct err *err);
void room_take_anyway(struct engine *e); /* adopted: it lives already */
void room_give(struct engine *e);
void leave_room(struct entry *n); /* if it has one */
/* Whether one more of this session's size is within the quotas of its user and tenant. */
int quota_check(struct engine *e, const struct store_session *s, bool is_new, bool asleep,
		struct err *err);
/* CPU time used by the sandbox so far goes to the user's account, once. */
void quota_charge(struct engine *e, const struct store_session *s, uint64_t cpu_us);

/* ---- what happens by itself ------------------------------------------------------------------ */
int adopt_all(struct engine *e, struct err *err); /* at the start */
void layers_settle(struct engine *e,
		   const char *layer); /* durable and measured, in the background */
void layers_settle_all(struct engine *e); /* what the last engine left unsynced */
int layers_collect(struct engine *e); /* what nothing names, and flattening */
int sweep_start(struct engine *e, struct err *err);
void sweep_stop(struct engine *e);

/* ---- single flight --------------------------------------------------------------------------- */
/* True: the caller leads and must call flight_land(). False: it waited, and *ret_r, ret, err are
 * the leader's. */
bool flight_board(struct engine *e, const char *name, struct session_entered *ret, int *ret_r,
		  struct err *err);
void flight_land(struct engine *e, const char *name, int r, const struct session_entered *res,
		 const struct err *err);
/* Only one at a time has this name. */
void turn_take(struct engine *e, const char *name);
void turn_give(struct engine *e, const char *name);

/* ---- starting -------------------------------------------------------------------------------- */
enum start_stage { START_STORE = 1, START_KEEPER, START_ADOPT, START_READY };
/* Told to whoever listens; `failed` NULL: it is under way. */
void start_stage(struct engine *e, enum start_stage stage, const struct err *failed);
int start_now(struct engine *e, struct err *err);
void start_stop(struct engine *e);

/* ---- progress -------------------------------------------------------------------------------- */
int progress_init(struct engine *e); /* 0 or -ENOMEM */
void progress_fini(struct engine *e);
void progress(struct engine *e, const char *session, const char *status, const char *stage,
	      const char *message, unsigned step, unsigned total);
/* The same in two steps, for who tells it to somebody else too. */
struct progress_state;
struct progress_state progress_now(struct engine *e, const char *status, const char *stage,
				   const char *message, unsigned step, unsigned total);
void progress_put(struct engine *e, const char *session, const struct progress_state *now);

#endif
