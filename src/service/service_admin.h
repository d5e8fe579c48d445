/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the engine for the administrator of the service. */
#ifndef LODGE_SERVICE_SERVICE_ADMIN_H
#define LODGE_SERVICE_SERVICE_ADMIN_H

#include "engine/engine.h"

const char *engine_home(const struct engine *e);

struct engine_health {
	bool store, keeper; /* they answer */
	char store_error[STORE_TEXT], keeper_error[STORE_TEXT]; /* if not */
};
/* Starts nothing, and waits for nothing but the store. */
void engine_health(struct engine *e, struct engine_health *ret);

/* Callers that wait until it is ready. */
unsigned engine_waiting(struct engine *e);
/* Why the last try to start that failed did; false: none did. */
bool engine_start_error(struct engine *e, struct err *ret, unsigned *ret_tries);

/* The newest event's id; 0 before the first. */
int engine_last_event(struct engine *e, int64_t *ret, struct err *err);

/* Hibernates every running session of all tenants; returns how many failed. */
unsigned engine_hibernate_all(struct engine *e, const char *actor);

#endif
