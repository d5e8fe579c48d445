/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: an answer that goes on for as long as its reader may hear it. */
#ifndef LODGE_API_CORE_SSE_H
#define LODGE_API_CORE_SSE_H

#include "api/core/api_call.h"
#include "engine/start_progress.h"

enum { SSE_LOOK_MS = 200, SSE_EVENT_MAX = 256 << 10 };

bool sse_is_requested(const struct api_call *c);
int sse_begin(struct api_call *c);
/* One event; id 0: it has none. Ends the writer. -1: the reader is gone. */
int sse_send(struct api_call *c, int64_t id, const char *event, struct json_out *j);
/* After SSE_LOOK_MS without an event: a sign of life where it is time for one. *silent_ms is the
 * caller's, 0 after each event. False: this is the end. */
bool sse_is_open(struct api_call *c, unsigned *silent_ms);
/* The data of a "progress" event. */
void sse_put_progress(struct json_out *j, const struct progress_state *p);

#endif
