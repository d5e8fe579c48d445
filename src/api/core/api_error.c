/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/api_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/core/internal.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/one_line.h"
#include "sandbox/guest_exec.h"
#include "engine/disk_space.h"
#include "engine/start_progress.h"
#include "service/service_admin.h"
#include "session/capacity.h"
#include "session/session_api.h"

/* The first row with the error's class, and its errno or 0, applies. */
static const struct problem {
	enum err_code code;
	int sys;
	unsigned status;
	char name[24];
	bool retryable;
} problems[] = {
	{ ERR_INVALID, EMEDIUMTYPE, 415, "UNSUPPORTED_MEDIA_TYPE", false },
	{ ERR_INVALID, EPROTONOSUPPORT, 426, "UPGRADE_REQUIRED", false },
	{ ERR_INVALID, EOPNOTSUPP, 405, "METHOD_NOT_ALLOWED", false },
	{ ERR_INVALID, 0, 400, "INVALID", false },
	{ ERR_NOT_FOUND, ESTALE, 410, "GONE", false },
	{ ERR_NOT_FOUND, SESSION_SANDBOX_ENDED, 410, "GONE", false },
	{ ERR_NOT_FOUND, 0, 404, "NOT_FOUND", false },
	{ ERR_CONFLICT, 0, 409, "CONFLICT", false },
	{ ERR_DENIED, ENOKEY, 401, "UNAUTHENTICATED", false },
	{ ERR_DENIED, EKEYREJECTED, 401, "UNAUTHENTICATED", false },
	{ ERR_DENIED, EKEYEXPIRED, 401, "UNAUTHENTICATED", false },
	{ ERR_DENIED, EADDRNOTAVAIL, 421, "MISDIRECTED", false },
	{ ERR_DENIED, ENOEXEC, 403, "POLICY", false },
	{ ERR_DENIED, 0, 403, "DENIED", false },
	{ ERR_LIMIT, EMSGSIZE, 413, "TOO_LARGE", false },
	{ ERR_LIMIT, EFBIG, 413, "TOO_LARGE", false },
	{ ERR_LIMIT, E2BIG, 413, "TOO_LARGE", false },
	{ ERR_LIMIT, ERANGE, 416, "OUTPUT_GONE", false },
	{ ERR_LIMIT, ENOSPC, 507, "LIMIT_DISK", false },
	{ ERR_LIMIT, EDQUOT, 507, "LIMIT_DISK", false },
	{ ERR_LIMIT, GUEST_EXEC_NO_PIDS, 429, "LIMIT_PIDS", true },
	{ ERR_LIMIT, GUEST_EXEC_NO_OUTPUT, 429, "LIMIT_OUTPUT", true },
	{ ERR_LIMIT, GUEST_EXEC_NO_MEMORY, 429, "LIMIT_MEMORY", false },
	{ ERR_LIMIT, ENOMEM, 503, "UNAVAILABLE", true },
	{ ERR_LIMIT, EMFILE, 503, "UNAVAILABLE", true },
	{ ERR_LIMIT, ENFILE, 503, "UNAVAILABLE", true },
	{ ERR_LIMIT, EAGAIN, 503, "UNAVAILABLE", true },
	{ ERR_LIMIT, EUSERS, 429, "RATE_LIMITED", true },
	{ ERR_LIMIT, 0, 429, "LIMIT", false }, /* a quota */
	{ ERR_TIMEOUT, 0, 504, "TIMEOUT", true },
	{ ERR_UNAVAILABLE, 0, 503, "UNAVAILABLE", true },
	{ ERR_INTERNAL, 0, 500, "INTERNAL", false },
};

static const struct problem *find_problem(const struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(problems); i++)
		if (problems[i].code == err->code &&
		    (!problems[i].sys || problems[i].sys == err->sys))
			return &problems[i];
	return &problems[ARRAY_LEN(problems) - 1];
}

int api_fail(struct err *err, enum err_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	*err = (struct err){ .code = code, .sys = sys };
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -1;
}

unsigned api_status(const struct err *err)
{
	return find_problem(err)->status;
}

const char *api_error_code(const struct err *err)
{
	return find_problem(err)->name;
}

bool api_error_is_retryable(const struct err *err)
{
	return find_problem(err)->retryable;
}

/* ---- details --------------------------------------------------------------------------------- */

static bool is_of_session(const struct api_call *c)
{
	static const char prefix[] = "/v1/sessions/{id}";

	return c->route && strncmp(c->route->path, prefix, sizeof(prefix) - 1) == 0;
}

/* Adds the current record, so the client need not request it before a retry. */
static void put_current(struct api_call *c, struct json_out *j)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct err ignored;

	if (api_session(c, &s, &ignored) == 0)
		api_put_session(c, j, "session", &s);
}

static void put_tombstone(struct api_call *c, struct json_out *j)
{
	struct store_tombstone t;
	struct session_ref ref;
	struct err ignored;

	if (api_ref(c, c->params[0], &ref, &ignored) == 0 &&
	    session_tombstone(c->engine, &c->caller, &ref, &t, &ignored) == 0) {
		json_out_str(j, "session", t.session);
		api_put_cause(j, "cause", &t.cause);
	}
}

static void put_ended_sandbox(struct api_call *c, struct json_out *j)
{
	struct session_ref ref = { .id = c->params[0] };
	struct store_ended_sandbox b;
	struct err ignored;

	if (session_ended_sandbox(c->engine, &c->caller, &ref, &b, &ignored) == 0) {
		json_out_str(j, "session", b.session);
		json_out_str(j, "sandbox", b.id);
		api_put_cause(j, "cause", &b.cause);
	}
}

static void put_start(struct api_call *c, struct json_out *j)
{
	struct progress_state p = { .stage = "store" };
	struct err ignored;

	(void)progress_get(c->engine, NULL, &p, &ignored);
	api_put_stage(j, &p);
}

static void put_full(struct api_call *c, struct json_out *j)
{
	struct capacity_report f;

	capacity_get_report(c->engine, &f);
	json_out_u64(j, "active", f.active);
	json_out_u64(j, "max", f.max);
	json_out_u64(j, "waiting", f.waiting);
	json_out_u64(j, "position", f.waiting + 1);
	json_out_u64(j, "idle", f.idle);
	json_out_i64(j, "retry_after_ms", f.retry_after_ms);
}

/* Adds the limit, so the client need not request it. */
static void put_limit(struct api_call *c, const struct err *err, struct json_out *j)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct limits l;
	struct err ignored;

	if (api_session(c, &s, &ignored) < 0)
		return;
	session_limits(c->engine, &s, &l);
	if (err->sys == GUEST_EXEC_NO_PIDS)
		json_out_u64(j, "pids", l.pids);
	else if (err->sys == GUEST_EXEC_NO_OUTPUT)
		json_out_u64(j, "output_memory_bytes", limits_output_share(l.memory_bytes));
	else
		json_out_u64(j, "memory_bytes", l.memory_bytes);
}

static void put_refusal(struct json_out *j, const struct policy_refusal *r)
{
	json_out_str(j, "policy", r->policy);
	json_out_str(j, "word", r->word);
	if (r->line) {
		json_out_u64(j, "offset", r->offset);
		json_out_u64(j, "line", r->line);
		json_out_u64(j, "column", r->column);
	}
	json_out_str(j, "reason", r->reason);
}

static void put_details(struct api_call *c, const struct err *err, struct json_out *j)
{
	if (err->code == ERR_CONFLICT && is_of_session(c))
		put_current(c, j);
	if (err->code == ERR_NOT_FOUND && err->sys == ESTALE && is_of_session(c))
		put_tombstone(c, j);
	if (err->code == ERR_NOT_FOUND && err->sys == SESSION_SANDBOX_ENDED && is_of_session(c))
		put_ended_sandbox(c, j);
	if (err->code == ERR_LIMIT && is_of_session(c) &&
	    (err->sys == GUEST_EXEC_NO_PIDS || err->sys == GUEST_EXEC_NO_MEMORY ||
	     err->sys == GUEST_EXEC_NO_OUTPUT))
		put_limit(c, err, j);
	if (err->code == ERR_UNAVAILABLE && err->sys == EAGAIN && c->engine)
		put_full(c, j);
	if (err->code == ERR_UNAVAILABLE && err->sys == EINPROGRESS && c->engine)
		put_start(c, j);
	if (err->code == ERR_DENIED && err->sys == ENOEXEC && *c->refusal.policy)
		put_refusal(j, &c->refusal);
}

static void set_headers(struct api_call *c, const struct err *err, unsigned status)
{
	struct capacity_report f = { .retry_after_ms = 1000 };
	char text[24];

	if (status == 401)
		http_set_header(c->rq, "WWW-Authenticate", "Bearer");
	if (status != 429 && status != 503)
		return;
	if (err->code == ERR_UNAVAILABLE && err->sys == EAGAIN && c->engine)
		capacity_get_report(c->engine, &f);
	snprintf(text, sizeof(text), "%lld", (long long)(f.retry_after_ms + 999) / 1000);
	if (api_error_is_retryable(err))
		http_set_header(c->rq, "Retry-After", text);
}

/* Internal errors go to the log only: they may reveal details of the host. */
const char *api_error_text(const struct err *err)
{
	return api_status(err) == 500 ? "internal error; see the server's log for this X-Request-Id"
				      : err->msg;
}

void api_error_begin(struct json_out *j, const char *code, const char *message)
{
	api_out(j);
	http_error_begin(j, code, message, false);
}

unsigned api_put_error(struct api_call *c, const struct err *err, struct json_out *j)
{
	http_error_begin(j, api_error_code(err), api_error_text(err), api_error_is_retryable(err));
	put_details(c, err, j);
	http_error_end(j);
	return api_status(err);
}

void api_log_error(struct api_call *c, const struct err *err)
{
	struct api *a = c->api;

	pthread_mutex_lock(&a->mutex);
	a->last_error.at = clock_wall_ms();
	a->last_error.code = err->code;
	a->last_error.sys = err->sys;
	a->last_error.count++;
	snprintf(a->last_error.message, sizeof(a->last_error.message), "%s", err->msg);
	pthread_mutex_unlock(&a->mutex);
	if (a->opts.on_error && api_status(err) == 500)
		a->opts.on_error(http_id(c->rq), err);
}

void api_error_hide_paths(struct err *err, const char *dir)
{
	static const char instead[] = "a file of the server";
	size_t len = strlen(dir);
	char *at;

	while (len && (at = strstr(err->msg, dir))) {
		char rest[sizeof(err->msg)];
		const char *end = at + len;

		snprintf(rest, sizeof(rest), "%s", end + strcspn(end, " :,;\"')"));
		snprintf(at, sizeof(err->msg) - (size_t)(at - err->msg), "%s%s", instead, rest);
	}
}

/* Only administrators have to do with files of the host. */
static void hide_host(const struct api_call *c, struct err *err)
{
	if (!c->engine || c->caller.is_admin)
		return;
	api_error_hide_paths(err, engine_home(c->engine));
	api_error_hide_paths(err, "/run/lodge/");
}

/* A failed write says only "no space left"; the client cannot see that the server's disk is the
 * reason. How much space the server has is for administrators only. */
static void explain_disk(struct api_call *c, struct err *err)
{
	bool admin = c->caller.is_admin, said = strstr(err->msg, "the server's disk");
	char was[100], why[DISK_TEXT];
	struct disk_space d;

	if (err->code != ERR_LIMIT || err->sys != ENOSPC || !c->engine || (said && !admin))
		return;
	disk_space_poll(c->engine);
	disk_space_get(c->engine, &d);
	disk_space_describe(&d, admin, why);
	if (!*why)
		return;
	snprintf(was, sizeof(was), "%.90s%s", said ? "" : err->msg, said ? "" : ": ");
	snprintf(err->msg, sizeof(err->msg), "%s%s", was, why);
}

/* A client that disconnected, came too early or filled its own disk is not an error. */
static bool is_service_error(const struct api_call *c, const struct err *err)
{
	if (api_status(err) < 500 || (err->code == ERR_LIMIT && err->sys == EDQUOT))
		return false;
	return err->code != ERR_UNAVAILABLE || (err->sys != EINPROGRESS && !http_is_gone(c->rq));
}

/* Messages may contain text of a guest, so they are reduced to one plain line. */
unsigned api_error(struct api_call *c, const struct err *why)
{
	static const char nothing[] = "{\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"no "
				      "memory\",\"retryable\":true,\"details\":{}}}";
	struct err plain = *why, *err = &plain;
	auto_free char *text = NULL;
	unsigned status;
	struct json_out j;
	size_t len;

	if (is_service_error(c, err))
		api_log_error(c, err);
	one_line_print(why->msg, plain.msg, sizeof(plain.msg));
	hide_host(c, err);
	explain_disk(c, err);
	api_out(&j);
	status = c->surface ? c->surface->put_error(c, err, &j) : api_put_error(c, err, &j);
	text = api_line(&j, &len);
	set_headers(c, err, status);
	if (!text) {
		status = 503;
		len = sizeof(nothing) - 1;
	}
	http_reply(c->rq, status, "application/json", text ? text : nothing, len);
	return status;
}
