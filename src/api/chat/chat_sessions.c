/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sessions: sessions of conversations, created without a sandbox. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/chat/chat.h"
#include "api/core/internal.h"

DEFINE_AUTO(json_t *, json_decref);

/* Metadata of sessions created through other APIs may be anything. */
static void put_title(struct json_out *j, const char *metadata)
{
	auto_call(json_decref) json_t *all = NULL;

	if (metadata && body_is_shallow(metadata, strlen(metadata)))
		all = json_loads(metadata, 0, NULL);
	json_out_str(j, "title", json_string_value(json_object_get(all, "title")));
}

/* adjusted: fields of the request that were reduced; NULL: none. */
static int reply_session(struct api_call *c, const struct store_session *s,
			 const struct session_fields *adjusted, struct err *err)
{
	struct json_out j;

	api_object(&j);
	json_out_str(&j, "status", "success");
	json_out_object(&j, "session");
	json_out_str(&j, "id", s->id);
	put_title(&j, s->metadata);
	json_out_text(&j, "accountId", s->user);
	json_out_str(&j, "status", s->state == SESSION_ARCHIVED ? "archived" : "running");
	json_out_str(&j, "template", s->template);
	json_out_i64(&j, "createdAt", s->created_at);
	json_out_i64(&j, "idleTimeoutMs", s->idle_timeout_ms);
	json_out_i64(&j, "lifecycleVersion", s->version);
	chat_put_status(c, &j, s);
	json_out_end(&j);
	json_out_array(&j, "adjusted");
	if (adjusted && session_fields_has(adjusted, SESSION_FIELD_IDLE))
		json_out_str(&j, NULL, "idleTimeoutMs");
	json_out_end(&j);
	return api_reply(c, 200, &j, err);
}

static int parse_title(struct api_call *c, const json_t *b, const char **ret, struct err *err)
{
	auto_call(json_decref) json_t *o = NULL;
	const char *title = NULL;

	if (api_str(b, "title", &title, err) < 0)
		return -1;
	if (!title)
		return 0;
	o = json_pack("{s:s}", "title", title);
	*ret = arena_keep(c->arena, o ? json_dumps(o, JSON_COMPACT) : NULL, free);
	return *ret ? 0 : err_sys(err, ENOMEM, "title");
}

int chat_create_session(struct api_call *c, struct err *err)
{
	struct session_opts w = { .no_start = true, .user = *c->user ? c->user : NULL };
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	json_t *b;

	if (chat_body(c, &b, err) < 0 || parse_title(c, b, &w.metadata, err) < 0 ||
	    api_str(b, "accountId", &w.user, err) < 0 ||
	    api_str(b, "template", &w.template, err) < 0 ||
	    api_int(b, "idleTimeoutMs", 1, INT64_MAX, &w.idle_timeout_ms, err) < 0)
		return -1;
	if (w.user && (!*w.user || strlen(w.user) >= STORE_USER))
		return err_set(err, ERR_INVALID, "accountId: must be 1 to %d bytes",
			       STORE_USER - 1);
	if (chat_check_create(c, w.user ? w.user : "", err) < 0 || chat_enter(c, &w, &how, err) < 0)
		return -1;
	return reply_session(c, &how.session, &how.adjusted, err);
}

/* ---- archive --------------------------------------------------------------------------------- */

/* Sets *archive from "status". */
static int parse_status(struct api_call *c, bool *archive, struct err *err)
{
	bool running = false;
	json_t *b;

	if (chat_body(c, &b, err) < 0 ||
	    api_choice(b, "status", "archived", "running", &running, err) < 0)
		return -1;
	*archive = !running;
	return api_member(b, "status") ? 0 : chat_missing(c, "status", err);
}

int chat_archive_session(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 }, after = { 0 };
	struct session_ref ref = { .id = s.id };
	bool archive = false;

	if (parse_status(c, &archive, err) < 0 || chat_session(c, c->params[0], &s, err) < 0)
		return -1;
	if (!archive && s.state == SESSION_HIBERNATING)
		return err_set(err, ERR_CONFLICT, "Sandbox is still being paused...");
	if (!archive && s.state != SESSION_ARCHIVED) /* no change needed */
		return reply_session(c, &s, NULL, err);
	if ((archive ? session_archive : session_unarchive)(c->engine, &c->caller, &ref, 0, &after,
							    err) < 0)
		return -1;
	return reply_session(c, &after, NULL, err);
}
