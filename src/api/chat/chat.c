/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the chat surface: finding a session, errors, common JSON. */
#include "api/chat/chat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/core/internal.h"
#include "engine/session_state.h"
#include "session/session_api.h"

/* Values of err.sys for errors with texts of this surface. */
enum {
	CHAT_FIELD = ENODATA, /* with ERR_INVALID: a field is missing */
	CHAT_BARE = ENOMEDIUM, /* with ERR_NOT_FOUND: nothing to resume from */
	CHAT_CUT_OFF = ENETUNREACH, /* with ERR_CONFLICT: sandboxes have no network */
};

static const char missing[] = "Missing ";

/* ---- requests -------------------------------------------------------------------------------- */

int chat_body(struct api_call *c, json_t **ret, struct err *err)
{
	if (api_body(c, NULL, ret, err) == 0)
		return 0;
	if (err->code == ERR_INVALID && err->sys == 0)
		err_set(err, ERR_INVALID, "Invalid JSON body");
	return -1;
}

int chat_missing(const struct api_call *c, const char *field, struct err *err)
{
	int sys = strcmp(c->route->method, "GET") != 0 ? CHAT_FIELD : 0;

	return api_fail(err, ERR_INVALID, sys, "%s%s", missing, field);
}

static int fail_forbidden(struct err *err)
{
	return err_set(err, ERR_DENIED, "Forbidden");
}

int chat_session(struct api_call *c, const char *id, struct store_session *ret, struct err *err)
{
	struct session_ref ref = { .id = id };
	struct store_session s;

	if (session_get(c->engine, &c->caller, &ref, &s, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		if ((*c->user || *c->session) && !api_owns_ended(c, &ref))
			err->sys = 0; /* only the owner may learn why it is gone */
		return session_is_foreign(c->engine, &c->caller, id) ? fail_forbidden(err) : -1;
	}
	if (!api_is_own(c, s.id, s.user)) {
		store_session_fini(&s);
		return fail_forbidden(err);
	}
	*ret = s;
	return 0;
}

int chat_find(struct api_call *c, struct store_session *ret, struct err *err)
{
	const char *id = http_query(c->rq, "sessionId");
	json_t *b;

	if (strcmp(c->route->method, "GET") != 0) {
		if (chat_body(c, &b, err) < 0)
			return -1;
		id = json_string_value(json_object_get(b, "sessionId"));
	}
	if (!id || !*id)
		return chat_missing(c, "sessionId", err);
	return chat_session(c, id, ret, err);
}

int chat_check_create(const struct api_call *c, const char *user, struct err *err)
{
	return api_is_own(c, "", user) ? 0 : fail_forbidden(err);
}

int chat_enter(struct api_call *c, const struct session_opts *w, struct session_enter_result *ret,
	       struct err *err)
{
	struct session_opts opts = *w;

	opts.default_lifetime_ms = c->api->opts.chat_lifetime_ms;
	opts.adjust = true;
	if (session_enter(c->engine, &c->caller, &opts, ret, err) == 0)
		return 0;
	if (err->code == ERR_NOT_FOUND) /* a missing object is an invalid field, because the session
					   is created here */
		err->code = ERR_INVALID;
	return -1;
}

int chat_not_running(struct err *err)
{
	return err_set(err, ERR_INVALID, "Sandbox not initialized");
}

int chat_no_files(struct err *err)
{
	return api_fail(err, ERR_NOT_FOUND, CHAT_BARE, "No sandbox available for resume");
}

int chat_no_network(struct err *err)
{
	return api_fail(
		err, ERR_CONFLICT, CHAT_CUT_OFF,
		"The repository cannot be cloned: sandboxes have no network here. Leave out "
		"repoUrl and put the files into the sandbox instead.");
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_handler(const struct api_call *c, api_fn *fn)
{
	return c->route && c->route->handler == fn;
}

/* A malformed or repeated key is a 401 here. The path was valid, so before the route is known
 * nothing else can be malformed. */
static bool is_about_key(const struct api_call *c, const struct err *err)
{
	return !c->route && err->code == ERR_INVALID && err->sys != EOPNOTSUPP;
}

/* A full server is not a failure: it returns Retry-After. */
static bool is_failure(const struct err *err)
{
	return err->code == ERR_INTERNAL || err->code == ERR_TIMEOUT ||
	       (err->code == ERR_UNAVAILABLE && err->sys != EAGAIN);
}

static unsigned get_status(const struct api_call *c, const struct err *err)
{
	if (is_about_key(c, err))
		return 401;
	if (err->code == ERR_NOT_FOUND && err->sys != SESSION_SANDBOX_ENDED)
		return 404;
	if (err->code == ERR_CONFLICT && err->sys == CHAT_CUT_OFF)
		return 502;
	if ((is_handler(c, chat_create_sandbox) || is_handler(c, chat_resume_snapshot)) &&
	    is_failure(err))
		return 502;
	if (is_handler(c, chat_create_snapshot) && is_failure(err))
		return 500;
	return api_status(err);
}

static const char *get_message(const struct api_call *c, const struct err *err, unsigned status,
			       char *buf, size_t size)
{
	if (err->sys == ENOKEY || err->sys == ENOTUNIQ)
		return "Exactly one of x-api-key or Authorization must be provided";
	if (err->code == ERR_NOT_FOUND && c->route && err->sys != CHAT_BARE &&
	    err->sys != SESSION_SANDBOX_ENDED)
		return "Session not found";
	if (status == 502 && is_failure(err))
		return "Failed to provision sandbox";
	if (status >= 500 && is_handler(c, chat_create_snapshot)) {
		snprintf(buf, size, "Failed to create snapshot: %s", api_error_text(err));
		return buf;
	}
	return api_error_text(err);
}

static unsigned put_error(struct api_call *c, const struct err *err, struct json_out *j)
{
	unsigned status = get_status(c, err);
	char buf[sizeof(err->msg) + 64];

	json_out_object(j, NULL);
	json_out_str(j, "status", "error");
	json_out_str(j, "error", get_message(c, err, status, buf, sizeof(buf)));
	if (err->code == ERR_INVALID && err->sys == CHAT_FIELD) {
		json_out_array(j, "missing_fields");
		json_out_str(j, NULL, err->msg + sizeof(missing) - 1);
		json_out_end(j);
	}
	if (err->code == ERR_NOT_FOUND && err->sys == ESTALE)
		json_out_str(j, "reason", err->msg); /* reports that the session was lost */
	json_out_end(j);
	return status;
}

/* ---- responses ------------------------------------------------------------------------------- */

void chat_put_status(struct api_call *c, struct json_out *j, const struct store_session *s)
{
	/* a session that never had a sandbox is shown as provisioning */
	uint8_t state = s->state == SESSION_NONE ? SESSION_PROVISIONING : s->state;

	json_out_str(j, "sessionId", s->id);
	json_out_bool(j, "hasSnapshot", session_has_snapshot(s));
	json_out_object(j, "lifecycle");
	json_out_i64(j, "serverTime", engine_now(c->engine));
	json_out_str(j, "state", state_machine_name(&session_states, state));
	json_out_i64_if(j, "lastActivityAt", s->last_activity_at, s->last_activity_at);
	json_out_i64_if(j, "hibernateAfter", s->hibernate_at, s->hibernate_at);
	json_out_i64_if(j, "sandboxExpiresAt", s->expires_at, s->expires_at);
	json_out_end(j);
}

const struct api_surface chat_surface = { .routes = API_TABLE(CHAT_ROUTES),
					  .put_error = put_error,
					  .no_store = true,
					  .untyped_json = true };
