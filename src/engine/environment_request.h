/* SPDX-License-Identifier: Apache-2.0 */
/* Templates whose environment is to be captured. */
#ifndef LODGE_ENGINE_ENVIRONMENT_REQUEST_H
#define LODGE_ENGINE_ENVIRONMENT_REQUEST_H

#include <stdbool.h>

#include "store/record.h"

struct engine;

enum { ENVIRONMENT_REQUESTS_MAX = 64 };

struct environment_request {
	char template[STORE_ID]; /* "": free */
	bool due; /* not captured yet */
};

struct environment_requests { /* engine.mutex */
	struct environment_request items[ENVIRONMENT_REQUESTS_MAX];
	unsigned nadded; /* ever */
	bool capturing; /* a worker captures one of them */
};

/* A session of the template was created, or (`changed`) the template changed: the timers capture
 * its environment, if the engine's options say so and it is not known yet. */
void environment_request_add(struct engine *e, const char *template, bool changed);

#endif
