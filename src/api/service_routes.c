/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation, health and metrics. */
#include "api/service_routes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "admit/limits_max.h"
#include "api/core/auth.h"
#include "api/core/internal.h"
#include "api/core/prometheus.h"
#include "api/core/openapi.h"
#include "base/array.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/one_line.h"
#include "sandbox/template/template_json.h"
#include "service/service_admin.h"
#include "engine/engine_metrics.h"
#include "engine/keeper_conn.h"
#include "engine/start_progress.h"
#include "session/capacity.h"
#include "service/startup.h"

enum { TAG_BYTES = 16, SENTENCE = 200 };

/* ---- documents ------------------------------------------------------------------------------- */

static struct document {
	const char *type;
	size_t len;
	char etag[2 * TAG_BYTES + 3];
	char policy[512]; /* Content-Security-Policy of the page */
} documents[2]; /* in the order of openapi_files */
static pthread_once_t documents_once = PTHREAD_ONCE_INIT;

/* Allows exactly the content of these tags by its hash, so injected code cannot run. */
static void add_hash(const char *page, const char *tag, char ret[static 80])
{
	char open[16], shut[16], text[BASE64_ENCODED(STORE_HASH) + 1] = "";
	uint8_t hash[STORE_HASH];
	const char *from, *to;
	struct err ignored;

	snprintf(open, sizeof(open), "<%s>", tag);
	snprintf(shut, sizeof(shut), "</%s>", tag);
	from = strstr(page, open);
	to = from ? strstr(from, shut) : NULL;
	snprintf(ret, 80, "'none'");
	if (!to)
		return;
	from += strlen(open);
	if (api_sha256(from, (size_t)(to - from), hash, &ignored) < 0)
		return;
	base64_encode(hash, sizeof(hash), text);
	snprintf(ret, 80, "'sha256-%s'", text);
}

static void prepare_documents(void)
{
	char script[80], style[80];
	uint8_t hash[STORE_HASH];
	struct err ignored;

	documents[OPENAPI_JSON].type = "application/json";
	documents[OPENAPI_DOCS].type = "text/html; charset=utf-8";
	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		struct document *d = &documents[i];
		size_t at = 1;

		d->len = strlen(openapi_files[i]);
		if (api_sha256(openapi_files[i], d->len, hash, &ignored) < 0)
			continue; /* without an ETag it is always sent */
		d->etag[0] = '"';
		for (size_t b = 0; b < TAG_BYTES; b++, at += 2)
			snprintf(d->etag + at, sizeof(d->etag) - at, "%02x", hash[b]);
		d->etag[at] = '"';
	}
	add_hash(openapi_files[OPENAPI_DOCS], "script", script);
	add_hash(openapi_files[OPENAPI_DOCS], "style", style);
	snprintf(documents[OPENAPI_DOCS].policy, sizeof(documents[0].policy),
		 "default-src 'none'; script-src %s; style-src %s; connect-src 'self'; "
		 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		 script, style);
}

static void set_page_headers(struct api_call *c, const char *policy)
{
	http_set_header(c->rq, "Content-Security-Policy", policy);
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	http_set_header(c->rq, "Referrer-Policy", "no-referrer");
}

static int reply_document(struct api_call *c, enum openapi_file which)
{
	const char *none = http_header(c->rq, "If-None-Match");
	const struct document *d = &documents[which];

	pthread_once(&documents_once, prepare_documents);
	if (*d->etag)
		http_set_header(c->rq, "ETag", d->etag);
	http_set_header(c->rq, "Cache-Control", "no-cache");
	if (*d->policy)
		set_page_headers(c, d->policy);
	if (none && *d->etag && (strcmp(none, "*") == 0 || strstr(none, d->etag)))
		http_reply(c->rq, 304, NULL, NULL, 0);
	else
		http_reply_static(c->rq, 200, d->type, openapi_files[which], d->len);
	return 0;
}

int service_get_openapi(struct api_call *c, struct err *err)
{
	(void)err;
	return reply_document(c, OPENAPI_JSON);
}

int service_get_docs(struct api_call *c, struct err *err)
{
	(void)err;
	return reply_document(c, OPENAPI_DOCS);
}

/* ---- index ----------------------------------------------------------------------------------- */

int service_get_index(struct api_call *c, struct err *err)
{
	const char *accept = http_header(c->rq, "Accept"), *version = c->api->opts.version;
	struct json_out j;
	char text[512];
	int n;

	set_page_headers(c, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'");
	http_set_header(c->rq, "Vary", "Accept, Origin");
	if (accept && strstr(accept, "text/html")) {
		n = snprintf(
			text, sizeof(text),
			"<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
			"<meta name=color-scheme content=\"light dark\">\n<title>lodge</title>\n"
			"<h1>lodge %s</h1>\n<ul>\n<li><a href=/docs>API reference</a>\n"
			"<li><a href=/openapi.json>OpenAPI document</a>\n"
			"<li><a href=/health>Health</a>\n</ul>\n</html>\n",
			version);
		http_reply(c->rq, 200, "text/html; charset=utf-8", text, (size_t)n);
		return 0;
	}
	api_object(&j);
	json_out_str(&j, "name", "lodge");
	json_out_str(&j, "version", version);
	json_out_str(&j, "docs", "/docs");
	json_out_str(&j, "openapi", "/openapi.json");
	json_out_str(&j, "health", "/health");
	return api_reply(c, 200, &j, err);
}

int service_get_metrics(struct api_call *c, struct err *err)
{
	size_t len;
	auto_free char *text = prometheus_text(c->api, c->scope == API_ADMIN, &len);

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

static void put_line(struct json_out *j, const char *key, const char *text)
{
	char line[SENTENCE];

	one_line_print(text, line, sizeof(line));
	json_out_str(j, key, line);
}

/* What the disk of the host has is for administrators. */
static void put_disk(struct json_out *j, const struct disk_space *d, bool admin)
{
	const struct keeper_disk *k = &d->last;
	bool volume = admin && k->volume_bytes;
	char reason[DISK_TEXT];

	disk_space_describe(d, admin, reason);
	json_out_object(j, "disk");
	json_out_str(j, "state", disk_state_name(d->state));
	json_out_str(j, "reason", *reason ? reason : NULL);
	json_out_i64_if(j, "free_bytes", admin, (int64_t)k->free_bytes);
	json_out_i64_if(j, "total_bytes", admin, (int64_t)k->total_bytes);
	json_out_i64_if(j, "reserve_bytes", admin, (int64_t)k->reserve_bytes);
	json_out_i64_if(j, "room_bytes", admin, (int64_t)k->room_bytes);
	json_out_i64_if(j, "volume_bytes", volume, (int64_t)k->volume_bytes);
	json_out_i64_if(j, "volume_free_bytes", volume, (int64_t)k->volume_free_bytes);
	json_out_bool(j, "volume_reserved", k->reserved != 0);
	json_out_end(j);
}

/* Progress, last error and waiting requests; null once started. */
static void put_starting(struct json_out *j, struct engine *e)
{
	struct progress_state p = { .stage = "store" };
	struct err last, ignored;
	unsigned tries;

	if (engine_is_ready(e)) {
		json_out_null(j, "starting");
		return;
	}
	json_out_object(j, "starting");
	(void)progress_get(e, NULL, &p, &ignored);
	api_put_stage(j, &p);
	if (engine_start_error(e, &last, &tries))
		put_line(j, "error", last.msg);
	else
		json_out_null(j, "error");
	json_out_u64(j, "tries", tries);
	json_out_u64(j, "waiting", engine_waiting(e));
	json_out_end(j);
}

static void put_capacity(struct json_out *j, const struct capacity_report *f)
{
	put_part(j, "room", !f->max || f->active < f->max || f->idle);
	json_out_u64(j, "active", f->active);
	json_out_u64(j, "max", f->max);
	json_out_u64(j, "idle", f->idle);
	json_out_u64(j, "waiting", f->waiting);
	json_out_end(j);
}

/* The message may name something of a tenant, unless it is the keeper's. */
static void put_last_error(struct json_out *j, struct api *a, bool admin)
{
	struct err last = { 0 };
	unsigned count;
	int64_t at;

	pthread_mutex_lock(&a->mutex);
	at = a->last_error.at;
	count = a->last_error.count;
	last.code = a->last_error.code;
	last.sys = a->last_error.sys;
	snprintf(last.msg, sizeof(last.msg), "%s", a->last_error.message);
	pthread_mutex_unlock(&a->mutex);
	if (!at) {
		json_out_null(j, "last_error");
		return;
	}
	json_out_object(j, "last_error");
	json_out_i64(j, "at", at);
	json_out_str(j, "code", api_error_code(&last));
	json_out_u64(j, "count", count);
	if (admin || last.sys == KEEPER_FAILED || last.sys == KEEPER_SILENT)
		put_line(j, "message", last.msg);
	else
		json_out_null(j, "message");
	json_out_end(j);
}

/* Under the names of `config`. A limit that is configured is enforced or refuses the session. */
static void put_config_problems(struct json_out *j, const struct enforcement *e)
{
	static const struct {
		const char *name, *limit;
	} all[] = { { "memory_bytes", "memory_bytes" },
		    { "cpu_milli", "cpus" },
		    { "max_processes", "pids" },
		    { "max_workspace_bytes", "disk_bytes" } };

	json_out_array(j, "limits_not_enforced");
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		template_put_problem(j, all[i].name,
				     enforcement_problem(e, KEEPER_STORE_DISK, all[i].limit));
	json_out_end(j);
}

/* Settings of thread sessions. */
static void put_config(struct json_out *j, const struct thread_config *t,
		       const struct capacity_report *f, const struct enforcement *e)
{
	json_out_object(j, "config");
	json_out_u64(j, "memory_bytes", t->memory_bytes);
	json_out_u64(j, "cpu_milli", t->cpu_milli);
	json_out_u64(j, "max_processes", t->pids);
	json_out_u64(j, "max_file_bytes", t->file_bytes);
	json_out_u64(j, "max_files", t->files);
	json_out_str(j, "max_files_applies_to", "uploads"); /* commands may create more */
	json_out_u64(j, "max_workspace_bytes", t->disk_bytes);
	json_out_str(j, "network", "none");
	json_out_str(j, "user", t->user);
	json_out_str(j, "workspace_dir", t->workdir);
	json_out_i64(j, "idle_timeout_ms", t->idle_ms);
	json_out_u64(j, "pool_min", t->pool_min);
	json_out_u64(j, "pool_target", t->pool);
	json_out_u64(j, "pool_max", f->max);
	put_config_problems(j, e);
	json_out_end(j);
}

static void put_service(struct json_out *j, struct api *a, const struct capacity_report *f)
{
	struct keeper_pool_state pool;
	struct enforcement e;

	json_out_bool(j, "insecure_no_auth", a->opts.no_auth);
	json_out_i64(j, "uptime_seconds", (clock_mono_us() - a->began_us) / 1000000);
	json_out_str(j, "worker_id", a->worker);
	engine_pool_state(a->opts.engine, &pool);
	json_out_object(j, "pool");
	json_out_u64(j, "available", pool.ready);
	json_out_u64(j, "allocated", f->active);
	json_out_u64(j, "total", pool.ready + f->active);
	json_out_u64(j, "max_capacity", f->max); /* 0: unlimited */
	json_out_end(j);
	json_out_u64(j, "active_sessions", f->active);
	json_out_bool(j, "redis_connected", false); /* kept for clients that expect the field */
	keeper_conn_enforcement(a->opts.engine, &e);
	put_config(j, &a->opts.threads, f, &e);
	template_put_not_enforced(j, LIMITS_NOT_ENFORCED, &e, KEEPER_STORE_DISK, NULL);
}

/* A keeper that is not running is restarted on demand, and on a full disk everything but new
 * sessions and snapshots works, so these do not count. */
static const char *why_not_ready(struct api *a, const struct engine_health *h)
{
	if (!h->store)
		return "database is not responding";
	if (!engine_is_ready(a->opts.engine))
		return "service is starting";
	if (h->disk.state == DISK_FAILED)
		return "the volume of the sandboxes cannot be written to";
	return api_is_draining(a) ? "service is shutting down" : NULL;
}

static const char *health_status(struct engine *e, const struct engine_health *h)
{
	if (!h->store)
		return "failing";
	if (!engine_is_ready(e))
		return "starting";
	return h->keeper && h->disk.state == DISK_OK ? "ok" : "degraded";
}

static int put_limits_max(struct json_out *j, struct engine *e, struct err *err)
{
	auto_fini(template_fini) struct template max;

	if (limits_max_get(e, &max, err) < 0)
		return -1;
	api_put_limit_values(j, "limits_max", &max);
	return 0;
}

int service_get_health(struct api_call *c, struct err *err)
{
	struct engine_health h;
	struct capacity_report f;
	struct json_out j;
	const char *reason;

	engine_health(c->engine, &h);
	capacity_get_report(c->engine, &f);
	reason = why_not_ready(c->api, &h);
	api_object(&j);
	json_out_str(&j, "status", health_status(c->engine, &h));
	json_out_str(&j, "reason", reason);
	json_out_str(&j, "version", c->api->opts.version);
	json_out_object(&j, "parts");
	put_part(&j, "store", h.store);
	json_out_end(&j);
	put_part(&j, "keeper", h.keeper);
	if (!h.keeper)
		put_line(&j, "error", h.keeper_error);
	json_out_end(&j);
	put_capacity(&j, &f);
	json_out_end(&j);
	put_disk(&j, &h.disk, c->scope == API_ADMIN);
	put_starting(&j, c->engine);
	put_last_error(&j, c->api, c->scope == API_ADMIN);
	put_service(&j, c->api, &f);
	json_out_str(&j, "policy_enforcement", shell_can_enforce() ? "landlock" : "none");
	if (put_limits_max(&j, c->engine, err) < 0) {
		json_out_fini(&j);
		return -1;
	}
	return api_reply(c, reason ? 503 : 200, &j, err);
}

/* For load balancers. */
int service_get_ready(struct api_call *c, struct err *err)
{
	struct engine_health h;
	struct json_out j;
	bool ready;

	engine_health(c->engine, &h);
	ready = !why_not_ready(c->api, &h);
	api_object(&j);
	json_out_bool(&j, "ready", ready);
	json_out_str(&j, "disk", disk_state_name(h.disk.state));
	return api_reply(c, ready ? 200 : 503, &j, err);
}

const struct api_surface service_surface = { .routes = API_TABLE(SERVICE_ROUTES),
					     .put_error = api_put_error };
