/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/sse.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { BEAT_MS = 15000 };

bool sse_is_requested(const struct api_call *c)
{
	const char *accept = http_header(c->rq, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

int sse_begin_as(struct api_call *c, const char *type)
{
	http_set_header(c->rq, "Cache-Control", "no-store");
	http_set_header(c->rq, "X-Accel-Buffering", "no");
	return http_stream_begin(c->rq, 200, type);
}

int sse_begin(struct api_call *c)
{
	return sse_begin_as(c, "text/event-stream") < 0
		       ? -1
		       : http_stream_write(c->rq, ": lodge\n\n", 9);
}

int sse_send(struct api_call *c, int64_t id, const char *event, struct json_out *j)
{
	size_t len;
	auto_free char *text = api_line(j, &len), *frame = NULL;
	char name[32] = "";
	int n = -1;

	if (id)
		snprintf(name, sizeof(name), "id: %lld\n", (long long)id);
	if (text)
		n = asprintf(&frame, "%sevent: %s\ndata: %.*s\n", name, event, (int)len, text);
	if (n < 0) {
		frame = NULL;
		return -1;
	}
	return http_stream_write(c->rq, frame, (size_t)n);
}

bool sse_is_open(struct api_call *c, unsigned *silent_ms)
{
	*silent_ms += SSE_LOOK_MS;
	if (api_is_cancelled(c))
		return false;
	if (*silent_ms < BEAT_MS)
		return true;
	*silent_ms = 0;
	return http_stream_write(c->rq, ": beat\n\n", 8) == 0;
}

int sse_keep(struct api_call *c, int64_t *spoke_ms)
{
	int64_t now = clock_mono_ms();

	if (api_is_cancelled(c))
		return -1;
	if (now - *spoke_ms >= BEAT_MS) {
		if (http_stream_write(c->rq, ": beat\n\n", 8) < 0)
			return -1;
		*spoke_ms = now;
	}
	return (int)(*spoke_ms + BEAT_MS - now);
}

void sse_put_progress(struct json_out *j, const struct progress_state *p)
{
	json_out_object(j, NULL);
	json_out_str(j, "status", progress_status_name(p->status));
	api_put_stage(j, p);
	json_out_str(j, "error", p->status == PROGRESS_ERROR ? p->error : NULL);
	json_out_i64(j, "updated", p->updated);
	json_out_i64(j, "updated_at", p->updated);
}

int sse_send_progress(struct api_call *c, const struct progress_state *p)
{
	struct json_out j;

	api_out(&j);
	sse_put_progress(&j, p);
	return sse_send(c, 0, "progress", &j);
}
