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

struct api {
	struct api_opts opts; /* the lists are copied below */
	struct auth *auth;
	pthread_rwlock_t names; /* protects origins and hosts */
	char **origins, **hosts; /* owned; NULL: none */
	atomic_bool draining;
	int64_t began_us;
	char worker[24]; /* identifies this process without revealing the host */
	atomic_ullong requests[METRICS_CLASSES]; /* [status / 100]; [0]: no response */
	struct histogram entered[SESSION_REPLACED + 1]; /* by enum session_outcome */
	struct histogram exec; /* commands the client waited for */
	struct gate body_gate;
	pthread_mutex_t mutex; /* protects the fields below */
	struct {
		int64_t at; /* milliseconds since 1970; 0: none */
		enum err_code code;
		int sys;
		unsigned count;
		char message[STORE_TEXT];
	} last_error;
};

#endif
