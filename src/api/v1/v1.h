/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of /v1 have from each other. */
#ifndef LODGE_API_V1_V1_H
#define LODGE_API_V1_V1_H

#include "api/core/api_call.h"
#include "api/v1/v1_routes.h"
#include "session/session_api.h"

/* The moves of a session that take a version and answer with the record. */
typedef int v1_move_fn(struct engine *e, const struct caller *who, const struct session_ref *ref,
		       int64_t if_version, struct store_session *ret, struct err *err);

/* A token for one user makes and sees sessions of that user only. */
int v1_check_token(struct api_call *c, const struct store_binding *key,
		   const struct session_opts *w, struct err *err);
int v1_reply_session(struct api_call *c, unsigned status, struct store_session *s,
		     struct err *err); /* ends *s */
int v1_reply_entered(struct api_call *c, const struct session_enter_result *how, struct err *err);

/* The id of the session that a parameter of the query names, as a path's {id} does; a key may lead
 * to what is gone. */
int v1_session_id(struct api_call *c, const char *name, const char **ret, struct err *err);
/* One that this key may see; another's is ERR_NOT_FOUND as one that never was. */
int v1_snapshot(struct api_call *c, const char *id, struct store_snapshot *ret, struct err *err);

#endif
