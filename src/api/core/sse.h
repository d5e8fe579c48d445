/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events. */
#ifndef LODGE_API_CORE_SSE_H
#define LODGE_API_CORE_SSE_H

#include "api/core/api_call.h"
#include "engine/start_progress.h"

enum { SSE_LOOK_MS = 200 };

bool sse_is_requested(const struct api_call *c);
int sse_begin(struct api_call *c);
/* The same for a stream of another type. */
int sse_begin_as(struct api_call *c, const char *type);
/* Sends one event; id 0: none. Ends the writer. -1: the client disconnected. */
int sse_send(struct api_call *c, int64_t id, const char *event, struct json_out *j);
/* Call it every SSE_LOOK_MS without an event: sends a keepalive when due. *silent_ms belongs to the
 * caller, who resets it after each event. False: stop. */
bool sse_is_open(struct api_call *c, unsigned *silent_ms);
/* The same for a stream that is woken by its events: returns in how many ms to call it again, or
 * -1: stop. *spoke_ms is the time (clock_mono_ms()) of the last event. */
int sse_keep(struct api_call *c, int64_t *spoke_ms);
int sse_send_progress(struct api_call *c, const struct progress_state *p);
/* The data of a "progress" event. */
void sse_put_progress(struct json_out *j, const struct progress_state *p);

#endif
