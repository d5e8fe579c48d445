/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the engine for the administrator of the service. */
#ifndef LODGE_SERVICE_SERVICE_ADMIN_H
#define LODGE_SERVICE_SERVICE_ADMIN_H

#include "engine/disk_space.h"
#include "engine/engine.h"

const char *engine_home(const struct engine *e);

struct engine_health {
	bool store, keeper; /* they answer */
	char keeper_error[STORE_TEXT]; /* if not */
	struct disk_space disk;
};
/* Starts nothing, and waits for nothing but the store. */
void engine_health(struct engine *e, struct engine_health *ret);

/* The newest event's id; 0 before the first. */
int engine_last_event(struct engine *e, int64_t *ret, struct err *err);

/* Hibernates every running session of all tenants; returns how many failed. */
unsigned engine_hibernate_all(struct engine *e, const char *actor);

#endif
