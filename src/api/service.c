/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked without a key: whether it works, how much it works, how it is used. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "api/metrics.h"
#include "api/openapi.h"
#include "session/admin.h"

static int get_root(struct api_call *c, struct err *err)
{
	char text[128];

	(void)err;
	snprintf(text, sizeof(text), "lodge %s: /v1, described by /openapi.json\n",
		 c->api->opts.version);
	http_reply(c->rq, 200, "text/plain; charset=utf-8", text, strlen(text));
	return 0;
}

static int get_openapi(struct api_call *c, struct err *err)
{
	(void)err;
	http_reply(c->rq, 200, "application/json", openapi_files[0], strlen(openapi_files[0]));
	return 0;
}

static int get_metrics(struct api_call *c, struct err *err)
{
	size_t len;
	auto_free char *text = metrics_text(c->api, &len);

	if (!text)
		return err_sys(err, ENOMEM, "metrics");
	http_reply(c->rq, 200, "text/plain; version=0.0.4; charset=utf-8", text, len);
	return 0;
}

/* ---- health ---------------------------------------------------------------------------------- */

static void put_part(struct json_out *j, const char *name, bool ok)
{
	json_out_object(j, name);
	json_out_bool(j, "ok", ok);
}

static void put_room(struct json_out *j, const struct session_full *f)
{
	put_part(j, "room", !f->max || f->active < f->max || f->idle);
	json_out_u64(j, "active", f->active);
	json_out_u64(j, "max", f->max);
	json_out_u64(j, "idle", f->idle);
	json_out_u64(j, "waiting", f->waiting);
	json_out_end(j);
}

/* When and of which kind; the sentence is in the log. */
static void put_trouble(struct json_out *j, struct api *a)
{
	int64_t at;
	unsigned count;
	struct err last = { 0 };

	pthread_mutex_lock(&a->mutex);
	at = a->trouble.at;
	count = a->trouble.count;
	last.code = a->trouble.code;
	pthread_mutex_unlock(&a->mutex);
	if (!at) {
		json_out_null(j, "last_error");
		return;
	}
	json_out_object(j, "last_error");
	json_out_i64(j, "at", at);
	json_out_str(j, "code", problem_code(&last));
	json_out_u64(j, "count", count);
	json_out_end(j);
}

static int get_health(struct api_call *c, struct err *err)
{
	struct engine_health h;
	struct session_full f;
	struct json_out j;
	bool ok;

	engine_health(c->engine, &h);
	engine_full(c->engine, &f);
	ok = h.store; /* a keeper that ended is started again */
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "status", !ok ? "failing" : h.keeper ? "ok" : "degraded");
	json_out_str(&j, "version", c->api->opts.version);
	json_out_object(&j, "parts");
	put_part(&j, "store", h.store);
	json_out_end(&j);
	put_part(&j, "keeper", h.keeper);
	json_out_end(&j);
	put_room(&j, &f);
	json_out_end(&j);
	put_trouble(&j, c->api);
	json_out_end(&j);
	return api_reply(c, ok ? 200 : 503, &j, err);
}

/* Whether new work should be sent here. */
static int get_ready(struct api_call *c, struct err *err)
{
	struct engine_health h;
	struct json_out j;
	bool ready;

	engine_health(c->engine, &h);
	ready = h.store && !api_is_draining(c->api);
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_bool(&j, "ready", ready);
	json_out_end(&j);
	return api_reply(c, ready ? 200 : 503, &j, err);
}

const struct api_route api_service[] = {
	{ "GET", "/", API_ANYONE, get_root },
	{ "GET", "/health", API_ANYONE, get_health },
	{ "GET", "/ready", API_ANYONE, get_ready },
	{ "GET", "/metrics", API_ANYONE, get_metrics },
	{ "GET", "/openapi.json", API_ANYONE, get_openapi },
	{ 0 },
};
