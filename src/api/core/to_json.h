/* SPDX-License-Identifier: Apache-2.0 */
/* Records as JSON, and fields that several bodies share. */
#ifndef LODGE_API_CORE_TO_JSON_H
#define LODGE_API_CORE_TO_JSON_H

#include "api/core/api_call.h"
#include "session/session_fields.h"

void api_put_session(struct api_call *c, struct json_out *j, const char *key,
		     const struct store_session *s);
const char *api_binding(const struct store_session *s, const char *kind); /* "": none */
/* A value that is JSON already, NULL: `otherwise`. */
void api_put_raw(struct json_out *j, const char *key, const char *json, const char *otherwise);
/* A time as ISO 8601 in UTC; 0: null. */
void api_put_iso(struct json_out *j, const char *key, int64_t ms);
/* Writes "path", with U+FFFD if it is not valid UTF-8, and then also "path_base64". */
void api_put_path(struct json_out *j, const char *path);
/* Writes a permission mode in octal. */
void api_put_mode(struct json_out *j, const char *key, unsigned mode);
void api_put_cause(struct json_out *j, const char *key, const struct store_cause *cause);
/* `of`: the session it belongs to; NULL: deleted, or the snapshot was imported. */
void api_put_snapshot(struct json_out *j, const char *key, const struct store_snapshot *s,
		      const struct store_session *of);
/* A list of names of fields. */
void api_put_fields(struct json_out *j, const char *key, const struct session_fields *f);
void api_put_exec(struct json_out *j, const char *key, const struct store_exec *x);
void api_put_hits(struct json_out *j, unsigned hits); /* "limits": names of the exceeded limits */
const char *api_outcome_name(enum session_outcome o);
const char *api_exec_state(uint8_t state);
/* "stage", "message", "step", "total_steps". */
struct progress_state;
void api_put_stage(struct json_out *j, const struct progress_state *p);
/* The limits that `t` sets, as an object. */
void api_put_limit_values(struct json_out *j, const char *key, const struct template *t);
/* "limits", and which of them this host does not enforce. */
void api_put_limits(struct api_call *c, struct json_out *j, const struct template *t);
/* Parses "limits", "env", "run_as", "workdir" and "class" of a body. Call template_fini(), also on
 * failure. */
int api_take_spec(const json_t *body, struct template *ret, struct err *err);
/* "NAME=value" of a member of "env"; owned by the caller. */
int api_take_env(const char *name, const json_t *value, char **ret, struct err *err);

#endif
