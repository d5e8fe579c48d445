/* SPDX-License-Identifier: Apache-2.0 */
/* The surface from inside, for the files of this directory only. */
#ifndef LODGE_API_CORE_INTERNAL_H
#define LODGE_API_CORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/core/api_call.h"
#include "api/core/arena.h"
#include "base/histogram.h"

struct auth;

enum { METRICS_CLASSES = 6 };
/* Of all at once, and of one tenant. Each may cost four times its size in memory. */
enum { BODY_GATE_MAX = 4, BODY_GATE_TENANT_MAX = 2 }; /* requests inside: all, of a tenant */

struct api {
	struct api_opts opts; /* its lists are below */
	struct auth *auth;
	pthread_rwlock_t names; /* of the two lists */
	char **origins, **hosts; /* owned; NULL: none */
	atomic_bool draining;
	int64_t began_us;
	char worker[24]; /* this process, by a name that tells nothing of the machine */
	atomic_ullong requests[METRICS_CLASSES]; /* [status / 100]; [0]: no answer */
	struct histogram timers[API_TIMERS];
	struct gate body_gate;
	pthread_mutex_t mutex; /* of what follows */
	struct {
		int64_t at; /* milliseconds since 1970; 0: there was none */
		enum err_code code;
		unsigned count;
	} last_error;
};

/* ---- routes.c ----------------------------------------------------------------------------------
 */

struct route_match {
	const struct api_route *route;
	const struct api_surface *surface; /* of the path, also if it has no such method */
	const char *params[4]; /* in the arena */
	char allow[64]; /* the methods of this path, when it is there */
};

/* ---- head.c: what is checked before anybody is asked for a key --------------------------------
 */

/* ERR_DENIED, with sys EADDRNOTAVAIL where it is the Host. */
int origin_check(struct api *a, const struct http_request *rq, struct err *err);
/* "127.0.0.1:80", "[::1]", "localhost" ... */
bool origin_is_loopback(const char *host);
/* For a browser that may; also for an answer that refuses. */
void origin_put_cors(struct api *a, struct http_request *rq);
/* Answers OPTIONS: what may be asked of this path. */
void origin_put_options(struct api *a, struct http_request *rq, const char *allow);

/* ---- problem.c ---------------------------------------------------------------------------------
 */

const char *api_error_code(const struct err *err); /* "NOT_FOUND" */
bool api_error_is_retryable(const struct err *err);
const char *api_error_text(const struct err *err); /* for callers; of a 500 it tells nothing */

/* ---- body.c -------------------------------------------------------------------------------------
 */

/* Whether a text from outside can be read as JSON on a thread's small stack: always ask first. */
bool body_is_shallow(const char *text, size_t len);

/* ---- large.c: what needs much memory, one way or the other -------------------------------------
 */

void body_gate_init(struct api *a);
void body_gate_fini(struct api *a);
/* Waits for a place, which the call has until its end. ERR_UNAVAILABLE: there was none in time. */
int body_gate_enter(struct api_call *c, struct err *err);

/* ---- api.c --------------------------------------------------------------------------------------
 */

void api_log_error(struct api_call *c, const struct err *err);

#endif
