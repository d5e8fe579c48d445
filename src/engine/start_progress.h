/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a start: of the engine itself, or of a session's sandbox. The latest state is kept
 * for callers that ask later. */
#ifndef LODGE_ENGINE_START_PROGRESS_H
#define LODGE_ENGINE_START_PROGRESS_H

#include <pthread.h>

#include "engine/engine.h"

enum { ENGINE_STAGES_MAX = 64 }; /* sessions whose progress is kept */

enum progress_status {
	PROGRESS_PENDING,
	PROGRESS_RUNNING,
	PROGRESS_READY,
	PROGRESS_ERROR,
};

struct progress_state {
	enum progress_status status;
	char stage[STORE_WORD];
	char message[STORE_TEXT];
	unsigned step, total_steps;
	char error[STORE_TEXT]; /* with PROGRESS_ERROR */
	int64_t updated; /* milliseconds since 1970 */
};

struct start_stage {
	char session[STORE_ID]; /* "": free, or the engine's own */
	uint64_t at; /* rises: the smallest is the oldest; 0: nothing was reported */
	struct progress_state state;
};

struct start_progress {
	pthread_mutex_t mutex; /* taken last, like the workers' */
	uint64_t count;
	struct start_stage engine, sessions[ENGINE_STAGES_MAX];
};

const char *progress_status_name(enum progress_status s);

/* Of a session, or of the engine with NULL. ERR_NOT_FOUND: nothing was reported, or too long
 * ago: only the latest sessions are kept. */
int progress_get(struct engine *e, const char *session, struct progress_state *ret,
		 struct err *err);

/* Called by whichever thread makes progress. It must not block or call progress_*(). */
typedef void progress_fn(void *arg, const struct progress_state *now);

void progress_report(struct engine *e, const char *session, const char *status, const char *stage,
		     const char *message, unsigned step, unsigned total);
struct progress_state progress_make(struct engine *e, const char *status, const char *stage,
				    const char *message, unsigned step, unsigned total);
void progress_publish(struct engine *e, const char *session, const struct progress_state *now);

#endif
