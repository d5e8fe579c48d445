/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, for every route that has some. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "session/progress.h"

bool api_wants_events(const struct api_call *c)
{
	const char *accept = http_header(c->rq, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

int api_events_begin(struct api_call *c)
{
	http_set_header(c->rq, "Cache-Control", "no-store");
	http_set_header(c->rq, "X-Accel-Buffering", "no");
	if (http_stream_begin(c->rq, 200, "text/event-stream") < 0)
		return -1;
	return http_stream_write(c->rq, ": lodge\n\n", 9);
}

int api_events_send(struct api_call *c, int64_t id, const char *name, struct json_out *j)
{
	auto_free char *text = json_out_take(j, NULL), *frame = NULL;
	char head[32] = "";
	int n;

	if (!text) {
		json_out_fini(j);
		return -1;
	}
	if (id)
		snprintf(head, sizeof(head), "id: %lld\n", (long long)id);
	n = asprintf(&frame, "%sevent: %s\ndata: %s\n\n", head, name, text);
	if (n < 0) {
		frame = NULL;
		return -1;
	}
	return http_stream_write(c->rq, frame, (size_t)n);
}

void api_put_progress(struct json_out *j, const struct progress_state *p)
{
	json_out_object(j, NULL);
	json_out_str(j, "status", progress_status_name(p->status));
	json_out_str(j, "stage", p->stage);
	json_out_str(j, "message", p->message);
	json_out_u64(j, "step", p->step);
	json_out_u64(j, "total_steps", p->total_steps);
	json_out_str(j, "error", p->status == PROGRESS_ERROR ? p->error : NULL);
	json_out_i64(j, "updated_at", p->updated);
	json_out_end(j);
}
