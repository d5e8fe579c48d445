/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/health.h"

#include "base/one_line.h"
#include "service/service_admin.h"
#include "engine/start_progress.h"
#include "service/startup.h"

enum { SENTENCE = 200 };

const char *health_status(struct engine *e, const struct engine_health *h)
{
	if (!h->store)
		return "failing";
	if (!engine_is_ready(e))
		return "starting";
	return h->keeper ? "ok"
			 : "degraded"; /* a keeper that is not running is restarted on demand */
}

void health_put_stage(struct engine *e, struct json_out *j)
{
	struct progress_state p = { .stage = "store" };
	struct err ignored;

	(void)progress_get(e, NULL, &p, &ignored);
	json_out_str(j, "stage", p.stage);
	json_out_str(j, "message", p.message);
	json_out_u64(j, "step", p.step);
	json_out_u64(j, "total_steps", p.total_steps);
}

static void put_line(struct json_out *j, const char *key, const char *text)
{
	char line[SENTENCE];

	one_line_print(text, line, sizeof(line));
	json_out_str(j, key, line);
}

void health_put_start(struct engine *e, struct json_out *j)
{
	struct err last;
	unsigned tries;

	if (engine_is_ready(e)) {
		json_out_null(j, "starting");
		return;
	}
	json_out_object(j, "starting");
	health_put_stage(e, j);
	if (engine_start_error(e, &last, &tries))
		put_line(j, "error", last.msg);
	else
		json_out_null(j, "error");
	json_out_u64(j, "tries", tries);
	json_out_u64(j, "waiting", engine_waiting(e));
	json_out_end(j);
}

void health_put_error(struct json_out *j, bool ok, const char *error)
{
	if (!ok)
		put_line(j, "error", error);
}
