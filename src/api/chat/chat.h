/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sessions and /api/sandbox: what chat applications call when a user opens a conversation,
 * comes back to it or leaves. This is what its files have from each other. */
#ifndef LODGE_API_CHAT_CHAT_H
#define LODGE_API_CHAT_CHAT_H

#include "api/chat/chat_routes.h"
#include "api/core/api_call.h"
#include "session/session_api.h"

DEFINE_AUTO(struct store_session *, store_session_fini);

/* ---- asked ----------------------------------------------------------------------------------- */

/* The body with whatever fields; what is none is told as this surface does. */
int chat_body(struct api_call *c, json_t **ret, struct err *err);
/* 400, with the name of the field where there is a body for it. */
int chat_missing(const struct api_call *c, const char *field, struct err *err);
/* The session of this id: 404, then 403 if it is another tenant's, or not the token's. */
int chat_session(struct api_call *c, const char *id, struct store_session *ret, struct err *err);
/* The same for "sessionId", of the query of a GET and else of the body. */
int chat_find(struct api_call *c, struct store_session *ret, struct err *err);
/* 403, for calls that a token for one session, or for another user than this, must not make. */
int chat_check_create(const struct api_call *c, const char *user, struct err *err);
/* session_enter() for a new one: what is not there is a field's fault. */
int chat_enter(struct api_call *c, const struct session_opts *w, struct session_enter_result *ret,
	       struct err *err);
/* 400: it has no sandbox, or none for long. */
int chat_not_running(struct err *err);
/* 404: nothing to resume from. */
int chat_no_files(struct err *err);
/* 502, before anything was made: a repository cannot be reached from here. */
int chat_no_network(struct err *err);
/* Whether a text can be the address of a repository: https, http, ssh, git, or user@host:path. */
bool chat_is_repository(const char *url);

/* ---- answered -------------------------------------------------------------------------------- */

/* "sessionId", "hasSnapshot", "lifecycle": what every look at a session has. */
void chat_put_status(struct api_call *c, struct json_out *j, const struct store_session *s);

api_fn chat_create_sandbox, chat_stop_sandbox, chat_get_status, chat_reconnect;

#endif
