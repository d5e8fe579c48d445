/* SPDX-License-Identifier: Apache-2.0 */
/* Internal declarations of api/core. */
#ifndef LODGE_API_CORE_INTERNAL_H
#define LODGE_API_CORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/core/api_call.h"
#include "api/core/arena.h"
#include "base/histogram.h"

struct auth;

enum { METRICS_CLASSES = 6 };
/* Large requests at once, in total and per tenant. Each may take four times its size in memory. */
enum { BODY_GATE_MAX = 4, BODY_GATE_TENANT_MAX = 2 }; /* requests inside: all, of a tenant */

struct api {
	struct api_opts opts; /* the lists are copied below */
	struct auth *auth;
	pthread_rwlock_t names; /* protects origins and hosts */
	char **origins, **hosts; /* owned; NULL: none */
	atomic_bool draining;
	int64_t began_us;
	char worker[24]; /* identifies this process without revealing the host */
	atomic_ullong requests[METRICS_CLASSES]; /* [status / 100]; [0]: no response */
	struct histogram timers[API_TIMERS];
	struct gate body_gate;
	pthread_mutex_t mutex; /* protects the fields below */
	struct {
		int64_t at; /* milliseconds since 1970; 0: none */
		enum err_code code;
		unsigned count;
	} last_error;
};

/* ---- routes.c ----------------------------------------------------------------------------------
 */

struct route_match {
	const struct api_route *route;
	const struct api_surface *surface; /* set if the path exists, even without this method */
	const char *params[4]; /* in the arena */
	char allow[64]; /* methods of the path, if it exists */
};

/* ---- origin_check.c: checks before authentication -------------------------------------------- */

/* ERR_DENIED, with sys EADDRNOTAVAIL if the Host is wrong. */
int origin_check(struct api *a, const struct http_request *rq, struct err *err);
/* "127.0.0.1:80", "[::1]", "localhost" ... */
bool origin_is_loopback(const char *host);
/* Sets CORS headers for an allowed origin, also on errors. */
void origin_put_cors(struct api *a, struct http_request *rq);
/* Replies to OPTIONS with the methods of the path. */
void origin_put_options(struct api *a, struct http_request *rq, const char *allow);

/* ---- api_error.c ----------------------------------------------------------------------------- */

const char *api_error_code(const struct err *err); /* "NOT_FOUND" */
bool api_error_is_retryable(const struct err *err);
const char *
api_error_text(const struct err *err); /* message for clients; hides the details of a 500 */

/* ---- api_body.c ------------------------------------------------------------------------------ */

/* Whether untrusted JSON can be parsed on a thread's small stack. Check it before parsing. */
bool body_is_shallow(const char *text, size_t len);

/* ---- body_gate.c: limits the memory of large requests ---------------------------------------- */

void body_gate_init(struct api *a);
void body_gate_fini(struct api *a);
/* Waits for a slot, which the call keeps until its end. ERR_UNAVAILABLE: timed out. */
int body_gate_enter(struct api_call *c, struct err *err);

/* ---- api_call.c ------------------------------------------------------------------------------ */

void api_log_error(struct api_call *c, const struct err *err);

#endif
