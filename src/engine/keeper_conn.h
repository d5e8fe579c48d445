/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's connection to the keeper: started when needed, and again after it died. */
#ifndef LODGE_ENGINE_KEEPER_CONN_H
#define LODGE_ENGINE_KEEPER_CONN_H

#include <pthread.h>
#include <stdatomic.h>

#include "sandbox/keeper_client.h"
#include "wire/keeper_proto.h"

struct engine;

struct keeper_conn {
	pthread_mutex_t mutex; /* of `busy` and `reviving`; held for moments */
	pthread_cond_t released;
	bool busy; /* keeper_conn_lock(): one call at a time uses what is below */
	bool reviving; /* a worker starts a keeper, or is about to */
	struct keeper_client *client; /* NULL: not started */
	/* clock_mono_ms() since when the keeper owes an answer; 0: it does not */
	atomic_int_least64_t owing_since;
	struct err last_error; /* why it could not be started, or exited; engine.mutex */
	/* After a failed start: its error, and when the next is tried (clock_mono_ms()). */
	struct err start_error;
	int64_t start_at, pause_ms;
	atomic_uint nwaiting; /* callers that wait until it works again */
	struct keeper_pool_state pool; /* as the keeper last reported it; engine.mutex */
	pthread_mutex_t enforcement_mutex;
	struct enforcement enforcement; /* as the last keeper reported it; enforcement_mutex */
};

/* Locks the keeper's connection; starts a keeper if none runs, and waits for answers that it owes.
 * NULL: that failed, and err has its own words, with KEEPER_FAILED; or it does not answer, with
 * KEEPER_SILENT. */
struct keeper_client *keeper_conn_lock(struct engine *e, struct err *err);
struct keeper_pool keeper_conn_pool_opts(const struct engine *e); /* that the engine asks for */
void keeper_conn_unlock(struct engine *e);

/* While the keeper fails, a call waits and is made again, for up to engine_opts.keeper_wait_ms. */
struct keeper_retry {
	bool sent; /* a keeper was there, and may have got the request */
	int64_t until; /* clock_mono_ms(); 0: it did not have to wait yet */
};
/* After a failure: waits a moment. False: it was another error, the time is over, or too many
 * wait. `repeat`: a request that was sent may be sent again. */
bool keeper_conn_may_retry(struct engine *e, struct keeper_retry *r, bool repeat,
			   const struct err *err);
/* How long calls of this thread wait: for a keeper that fails (above), and for one that does not
 * answer. Returns the previous value. */
enum keeper_patience {
	KEEPER_PATIENT, /* the default: for a caller */
	KEEPER_IMPATIENT, /* the timers, the workers and the start: they try again by themselves */
	KEEPER_BRIEF, /* for what is nice to know */
};
enum keeper_patience keeper_conn_set_patience(enum keeper_patience patience);
/* 0, or -1 with KEEPER_SILENT: the keeper owes an answer and does not give it while this waits.
 * Before a step that would have to be undone then. */
int keeper_conn_check_answers(struct engine *e, struct err *err);
/* How long it has owed an answer; 0: it does not. */
int64_t keeper_conn_silent_ms(struct engine *e);
/* Whether it runs and answers; if not, ret says what is wrong. Waits for nothing. */
bool keeper_conn_is_healthy(struct engine *e, char *ret, size_t size);

/* fn(client, ...) with the lock: the result of one call, or -1 with err set. The arguments are
 * evaluated again for each try. */
#define KEEPER_CALL_AS(e, err, repeat, fn, ...)                                                    \
	({                                                                                         \
		struct keeper_retry w_ = { 0 };                                                    \
		int r_;                                                                            \
                                                                                                   \
		do {                                                                               \
			struct keeper_client *k_ = keeper_conn_lock(e, err);                       \
                                                                                                   \
			r_ = k_ ? fn(k_, __VA_ARGS__) : -1;                                        \
			w_.sent = k_;                                                              \
			if (k_)                                                                    \
				keeper_conn_unlock(e);                                             \
		} while (r_ < 0 && keeper_conn_may_retry(e, &w_, repeat, err));                    \
		r_;                                                                                \
	})
/* For requests that have the same effect if they are made twice. */
#define KEEPER_CALL(e, err, fn, ...) KEEPER_CALL_AS(e, err, true, fn, __VA_ARGS__)
/* For the others: if the keeper exits meanwhile, the caller cleans up. */
#define KEEPER_CALL_ONCE(e, err, fn, ...) KEEPER_CALL_AS(e, err, false, fn, __VA_ARGS__)
/* Which limits are enforced, as the last keeper reported it; not known before the first. */
void keeper_conn_enforcement(struct engine *e, struct enforcement *ret);
/* For the timers: has a worker replace a keeper that died, because it may have left a sandbox
 * frozen, which its successor thaws. False: none runs at the moment, or it does not answer. Waits a
 * second at most. */
bool keeper_conn_revive(struct engine *e);
/* The pool, as the keeper reports it or last did. */
void keeper_conn_pool(struct engine *e, struct keeper_pool_state *ret);
/* One request without descriptors that may be made twice; ret may be NULL. */
int keeper_conn_call(struct engine *e, const struct keeper_request *req, struct keeper_reply *ret,
		     struct err *err);
/* One call each, by the id of a sandbox or layer. */
int keeper_conn_stats(struct engine *e, const char *sandbox, struct keeper_stats *ret,
		      struct err *err);
/* How lodge-init of a sandbox ended; ERR_NOT_FOUND if the keeper has no such sandbox. Waits a
 * moment for one that is about to end. */
int keeper_conn_exit(struct engine *e, const char *sandbox, struct keeper_exit *ret,
		     struct err *err);
int keeper_conn_stop(struct engine *e, const char *sandbox, struct err *err);
int keeper_conn_destroy(struct engine *e, const char *sandbox, struct err *err);
/* Waits until its processes have exited. */
int keeper_conn_seal(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
		     struct err *err);
/* Waits for the copy, if it is one. */
int keeper_conn_snapshot(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
			 uint64_t *ret_bytes, struct err *err);
/* Waits for the job with this name. */
int keeper_conn_wait_job(struct engine *e, const char *name, uint64_t *ret_bytes, struct err *err);
int keeper_conn_has_layer(struct engine *e, const char *layer, bool *ret, struct err *err);

#endif
