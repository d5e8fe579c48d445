/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP words to calls of the engine and back. A route is one line of a table; a handler is a thin
 * translation without rules of its own. */
#ifndef LODGE_API_CORE_API_CALL_H
#define LODGE_API_CORE_API_CALL_H

#include <jansson.h>

#include "api/core/api_route.h"
#include "base/gate.h"
#include "base/json.h"
#include "http/http_request.h"
#include "engine/engine.h"
#include "admit/policy.h"
#include "thread/thread.h"

struct api;
struct auth_pass;

struct api_call {
	struct api *api;
	struct engine *engine;
	struct http_request *rq;
	struct caller who; /* tenant and actor of the key */
	enum api_scope scope; /* what the key may */
	char user[STORE_USER]; /* not empty: a token for this end user alone */
	char session[STORE_ID]; /* not empty: a token for this session alone */
	const char *params[4]; /* of the path, decoded, in order; "" where there is none */
	const struct api_route *route; /* NULL before one was found */
	const struct api_surface *surface; /* of the path, once it is known; NULL: /v1 */
	struct api_arena *arena; /* goes with the call */
	struct auth_pass *pass; /* of the key; NULL: none was asked for */
	int64_t held_at_us; /* when api_key_holds() last looked */
	struct gate_ticket body_place; /* of body_gate_enter() */
	struct policy_refusal
		refusal; /* what a policy refused a command for: give it to run_want */
};

struct api_opts {
	struct engine *engine;
	const char *version;
	const char *const *origins; /* of CORS; NULL-terminated; may be NULL */
	const char *const *hosts; /* names a Host header may have besides loopback ones */
	bool loopback_only; /* then a Host that is no loopback name is refused */
	/* Of each key: requests per second, at once after a pause, and under way; 0: any number. */
	unsigned rate, burst, concurrent;
	struct thread_config threads; /* of what /create_session makes */
	bool no_auth; /* a request without a key is one of tenant "default" */
	/* Receives the full error of each response with status 500; may be NULL. */
	void (*on_error)(void *arg, const char *request, const struct err *err);
	void *arg;
};
bool api_is_draining(const struct api *a);

/* ---- for handlers
 * ---------------------------------------------------------------------------------- */

/* Whether what began with the key may go on: it has not been removed, and has not expired. For what
 * lasts; asks once a second at most. */
bool api_key_holds(struct api_call *c);
/* The caller is gone, the service ends, or the key does not hold. */
bool api_is_cancelled(struct api_call *c);
/* The session that a path's {id} names: an id, or "key:KEY". A token for one session or user sees
 * no other: ERR_NOT_FOUND. */
int api_ref(struct api_call *c, const char *id, struct session_ref *ret, struct err *err);
/* Whether a token, if it is for one session or user only, is for this one. */
bool api_is_own(const struct api_call *c, const char *session, const char *user);
/* Whether what belongs to this session ("": to none) may be seen: ERR_NOT_FOUND. */
int api_may_see(struct api_call *c, const char *session, struct err *err);
/* The body as a JSON object of these fields and no other. NULL-terminated names; an unknown one is
 * ERR_INVALID that names it. NULL: of any field, for clients that always sent some more. An empty
 * body is an empty object. *ret is freed with the call. */
int api_body(struct api_call *c, const char *const *fields, json_t **ret, struct err *err);
/* Typed members; absent leaves *ret as it is; the wrong type is ERR_INVALID that names it. */
int api_str(const json_t *o, const char *name, const char **ret, struct err *err);
int api_int(const json_t *o, const char *name, int64_t min, int64_t max, int64_t *ret,
	    struct err *err);
int api_bool(const json_t *o, const char *name, bool *ret, struct err *err);
/* The same for a parameter of the query. */
int api_query_int(struct api_call *c, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err);
bool api_query_flag(struct api_call *c, const char *name); /* there, and not "0" or "false" */
/* Sends what was written and ends the writer. */
int api_reply(struct api_call *c, unsigned status, struct json_out *j, struct err *err);
void api_out(struct json_out *j); /* a writer with the usual bound */
/* The HTTP status of an error; ERR_NOT_FOUND with sys ESTALE is 410, ERR_UNAVAILABLE 503 ...
 * problem.c has the table. */
unsigned api_status(const struct err *err);
/* Writes the body of an error as /v1 has it, and returns its status. */
unsigned api_put_error(struct api_call *c, const struct err *err, struct json_out *j);
/* Replies with an error in the form of the surface, and returns its status. */
unsigned api_error(struct api_call *c, const struct err *err);

/* Shapes that several routes share. */
void api_put_session(struct api_call *c, struct json_out *j, const char *key,
		     const struct store_session *s);
/* A time as ISO 8601 in UTC; 0: null. */
void api_put_iso(struct json_out *j, const char *key, int64_t ms);
/* "path"; where that is no UTF-8 it has U+FFFD in it, and its bytes are "path_base64" beside it. */
void api_put_path(struct json_out *j, const char *path);
void api_put_cause(struct json_out *j, const char *key, const struct store_cause *cause);
/* `of` is the session it was taken of; NULL: that is gone, or it was brought in. */
void api_put_snapshot(struct json_out *j, const char *key, const struct store_snapshot *s,
		      const struct store_session *of);
void api_put_exec(struct json_out *j, const char *key, const struct store_exec *x);
void api_put_hits(struct json_out *j, unsigned hits); /* "limits": their names */
const char *api_outcome_name(enum session_outcome o);
/* struct template from "limits", "env", "run_as", "workdir", "class" of a body; for
 * template_fini(), also on failure. */
int api_take_spec(const json_t *body, struct template *ret, struct err *err);
void api_put_limits(struct json_out *j, const char *key, const struct template *t);
/* Of a list: "limit" and "after" of the query; the object with the list in it, from api_out() to
 * before the first; and its end, with the cursor of the next page, or null. */
int api_page(struct api_call *c, struct store_page *ret, struct err *err);
void api_list(struct json_out *j, const char *name);
void api_list_end(struct json_out *j, int64_t next);

/* ---- numbers
 * ------------------------------------------------------------------------------------- */

enum api_timer {
	API_TIME_CREATED, /* entering, by outcome */
	API_TIME_REUSED,
	API_TIME_RESUMED,
	API_TIME_REPLACED,
	API_TIME_EXEC, /* commands that were waited for */
	API_TIMERS,
};
void api_observe(struct api *a, enum api_timer t, uint64_t us);
void api_observe_entered(struct api *a, enum session_outcome outcome, uint64_t us);
void api_count_request(struct api *a, unsigned status); /* once per request, after it */

#endif
