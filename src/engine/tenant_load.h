/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests of each tenant take at the moment, over all its keys. A tenant may have a part
 * of the service only, so that something remains for the others. What the service has in all is
 * bounded elsewhere. */
#ifndef LODGE_ENGINE_TENANT_LOAD_H
#define LODGE_ENGINE_TENANT_LOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct engine;
struct engine_opts;
struct tenant_usage;

enum tenant_resource {
	TENANT_REQUESTS, /* in flight */
	TENANT_STREAMS, /* open responses without an end, and WebSockets */
	TENANT_BODIES, /* bytes of request bodies in memory */
	TENANT_QUEUE_CAPACITY, /* callers that wait for a sandbox */
	TENANT_QUEUE_KEEPER, /* for a keeper that fails */
	TENANT_QUEUE_START, /* for the start of the engine */
	TENANT_RESOURCES
};

enum { TENANT_LOAD_BUCKETS = 256 };

struct tenant_load {
	pthread_mutex_t mutex; /* taken last */
	uint64_t max[TENANT_RESOURCES]; /* of one tenant; 0: unlimited */
	struct tenant_usage *tenants[TENANT_LOAD_BUCKETS]; /* those that have something */
};

void tenant_load_init(struct tenant_load *l, const struct engine_opts *o);
void tenant_load_fini(struct tenant_load *l);

/* What a holder has taken; zero-initialized: nothing. The engine must outlive it. */
struct tenant_share {
	struct engine *engine;
	struct tenant_usage *usage;
	uint64_t taken[TENANT_RESOURCES];
};
/* Never blocks. ERR_LIMIT with sys EUSERS: the tenant has all it may have; the message names the
 * setting. A share is of one tenant. */
int tenant_load_take(struct engine *e, const char *tenant, enum tenant_resource what,
		     uint64_t amount, struct tenant_share *s, struct err *err);
void tenant_load_release(struct tenant_share *s, enum tenant_resource what);
void tenant_load_release_all(struct tenant_share *s);

/* The tenant whose request the calling thread handles, for the queues of the engine; NULL: none,
 * the work is the service's own. Returns the one before. The text is borrowed. */
const char *tenant_load_set_caller(const char *tenant);
/* Takes a place in a queue for the tenant of this thread. */
int tenant_load_queue(struct engine *e, enum tenant_resource what, struct tenant_share *s,
		      struct err *err);

#endif
