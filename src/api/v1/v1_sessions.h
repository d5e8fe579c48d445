/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, for several routes of /v1. */
#ifndef LODGE_API_V1_V1_SESSIONS_H
#define LODGE_API_V1_V1_SESSIONS_H

#include "api/core/api_call.h"
#include "api/v1/v1_routes.h"
#include "session/session_api.h"

/* State changes of a session that take a version and return the record. */
typedef int v1_move_fn(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       int64_t if_version, struct store_session *ret, struct err *err);

/* Checks that a user token creates and sees only sessions of its user. */
int v1_check_token(struct api_call *c, const struct store_binding *key,
		   const struct session_opts *w, struct err *err);
int v1_reply_session(struct api_call *c, unsigned status, struct store_session *s,
		     struct err *err); /* ends *s */
int v1_reply_entered(struct api_call *c, const struct session_enter_result *how, struct err *err);

/* Resolves a session named by a query parameter, as in a path. A key may lead to a deleted session.
 */
int v1_session_id(struct api_call *c, const char *name, const char **ret, struct err *err);
/* A snapshot that this key may see; otherwise ERR_NOT_FOUND. */
int v1_snapshot(struct api_call *c, const char *id, struct store_snapshot *ret, struct err *err);

#endif
