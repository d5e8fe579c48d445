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
	pthread_mutex_t mutex; /* of the client */
	struct keeper_client *client; /* NULL: not started */
	atomic_bool start_failed; /* the last start of the keeper failed: */
	struct err start_error; /* engine.mutex */
	struct keeper_pool_state pool; /* as the keeper last reported it; engine.mutex */
};

enum keeper_presence {
	KEEPER_PRESENCE_NONE,
	KEEPER_PRESENCE_SANDBOX, /* it runs */
	KEEPER_PRESENCE_FILES, /* only its files exist */
};
struct keeper_listing { /* sorted by id */
	struct keeper_listing_item {
		char id[KEEPER_ID_SIZE];
		enum keeper_what what;
	} * items;
	size_t count;
};

/* Locks the keeper's connection; starts a keeper if none runs. NULL with err set. */
struct keeper_client *keeper_conn_lock(struct engine *e, struct err *err);
struct keeper_pool keeper_conn_pool_opts(const struct engine *e); /* that the engine asks for */
void keeper_conn_unlock(struct engine *e);
/* fn(client, ...) with the lock: the result of one call, or -1 with err set. */
#define KEEPER_CALL(e, err, fn, ...)                                                               \
	({                                                                                         \
		struct keeper_client *k_ = keeper_conn_lock(e, err);                               \
		int r_ = k_ ? fn(k_, __VA_ARGS__) : -1;                                            \
                                                                                                   \
		if (k_)                                                                            \
			keeper_conn_unlock(e);                                                     \
		r_;                                                                                \
	})
/* Replaces a keeper that died: it may have left a sandbox frozen, which its successor thaws. */
void keeper_conn_revive(struct engine *e);
/* One request without descriptors; ret may be NULL. */
int keeper_conn_call(struct engine *e, const struct keeper_request *req, struct keeper_reply *ret,
		     struct err *err);
/* One call each, by the id of a sandbox or layer. */
int keeper_conn_stats(struct engine *e, const char *sandbox, struct keeper_stats *ret,
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
int keeper_conn_list(struct engine *e, struct keeper_listing *ret, struct err *err);
int keeper_conn_has_layer(struct engine *e, const char *layer, bool *ret, struct err *err);
void keeper_listing_fini(struct keeper_listing *l);
enum keeper_presence keeper_listing_sandbox(const struct keeper_listing *l, const char *id);
bool keeper_listing_has_layer(const struct keeper_listing *l, const char *id);

#endif
