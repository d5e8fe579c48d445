/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of liblodge: each call of include/lodge.h is a thin wrapper of an engine call. */
#ifndef LODGE_LIB_LIB_ENGINE_H
#define LODGE_LIB_LIB_ENGINE_H

#include <lodge.h>

#include "admit/policy.h"
#include "engine/engine.h"
#include "thread/thread.h"
#include "thread/thread_files.h"

#define PUBLIC __attribute__((visibility("default")))

struct lodge {
	struct engine *engine;
	struct caller caller;
	char *tenant, *actor; /* `caller` points to these */
	struct thread_config threads;
};

extern _Thread_local struct err last; /* for lodge_last_error() */
extern _Thread_local enum session_outcome last_outcome;
extern _Thread_local struct policy_refusal last_word; /* for lodge_last_refusal() */
extern _Thread_local struct thread_limit_hit last_full;
/* Starts a call that needs the sandbox: resets the outcome and refusal of the previous one. */
void forget_last(void);

/* Allocates zeroed memory; lodge_free() calls `fini` (may be NULL) before it frees it. */
void *box_new(size_t size, void (*fini)(void *body));

#endif
