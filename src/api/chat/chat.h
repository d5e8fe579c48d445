/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sessions and /api/sandbox: the API of chat applications with one sandbox per conversation.
 * Shared declarations of this directory. */
#ifndef LODGE_API_CHAT_CHAT_H
#define LODGE_API_CHAT_CHAT_H

#include "api/chat/chat_routes.h"
#include "api/core/api_call.h"
#include "session/session_api.h"

/* ---- requests -------------------------------------------------------------------------------- */

/* Parses a body with any fields; errors have the form of this surface. */
int chat_body(struct api_call *c, json_t **ret, struct err *err);
/* 400 for a missing field; names it if the request has a body. */
int chat_missing(const struct api_call *c, const char *field, struct err *err);
/* The session with this id: 404, or 403 if it belongs to another tenant or the token does not
 * match. */
int chat_session(struct api_call *c, const char *id, struct store_session *ret, struct err *err);
/* The same for "sessionId" from the query of a GET, otherwise from the body. */
int chat_find(struct api_call *c, struct store_session *ret, struct err *err);
/* 403 if a session token, or a token of another user, may not make this call. */
int chat_check_create(const struct api_call *c, const char *user, struct err *err);
/* session_enter() for a new session, with the lifetime of this API: a missing template is an
 * invalid field, and times beyond their bounds are reduced. */
int chat_enter(struct api_call *c, const struct session_opts *w, struct session_enter_result *ret,
	       struct err *err);
/* 400: no sandbox is running, or it ends soon. */
int chat_not_running(struct err *err);
/* 404: nothing to resume from. */
int chat_no_files(struct err *err);
/* 502, before anything is created: sandboxes have no network. */
int chat_no_network(struct err *err);

/* ---- responses ------------------------------------------------------------------------------- */

/* Writes "sessionId", "hasSnapshot" and "lifecycle". */
void chat_put_status(struct api_call *c, struct json_out *j, const struct store_session *s);

#endif
