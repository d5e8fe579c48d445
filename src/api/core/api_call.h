/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations for route handlers. A handler translates one request into calls of the engine and
 * contains no policy of its own. */
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
	struct caller caller; /* tenant and actor of the key */
	enum api_scope scope; /* scope of the key */
	char user[STORE_USER]; /* if not empty: the token is for this end user only */
	char session[STORE_ID]; /* if not empty: the token is for this session only */
	const char *params[4]; /* path parameters, decoded, in order; "" if unused */
	const struct api_route *route; /* NULL until the handler is called */
	const struct api_surface *surface; /* NULL until the path is known, and for unknown paths */
	struct api_arena *arena; /* memory that is freed with the call */
	struct auth_pass *pass; /* NULL: no key was required */
	int64_t held_at_us; /* last check of api_key_holds() */
	struct gate_ticket body_place; /* from body_gate_enter() */
	struct policy_refusal refusal; /* why a policy refused a command; set through exec_opts */
};

struct api_opts {
	struct engine *engine;
	const char *version;
	const char *const *origins; /* allowed origins; NULL-terminated, may be NULL */
	const char *const *hosts; /* allowed Host names in addition to loopback names */
	bool loopback_only; /* reject other than loopback Host names */
	/* Limits per key: requests per second, burst, and requests in flight; 0: unlimited. */
	unsigned rate, burst, concurrent;
	struct thread_config threads; /* settings of thread sessions */
	bool no_auth; /* requests without a key act for tenant "default" */
	/* Receives the full error of each response with status 500; may be NULL. */
	void (*on_error)(void *arg, const char *request, const struct err *err);
	void *arg;
};
bool api_is_draining(const struct api *a);

/* ---- for handlers
 * ---------------------------------------------------------------------------------- */

/* Whether the key is still valid. For long calls; checks at most once a second. */
bool api_key_holds(struct api_call *c);
/* The client disconnected, the service shuts down, or the key is no longer valid. */
bool api_is_cancelled(struct api_call *c);
/* Resolves the {id} of a path: an id, or "key:KEY". ERR_NOT_FOUND if the token is for another
 * session or user. */
int api_ref(struct api_call *c, const char *id, struct session_ref *ret, struct err *err);
/* Whether a session or user token is for this one. True for other keys. */
bool api_is_own(const struct api_call *c, const char *session, const char *user);
/* Checks that the token may see objects of this session ("": of none): ERR_NOT_FOUND. */
int api_may_see(struct api_call *c, const char *session, struct err *err);
/* Parses the body as a JSON object with only these fields ("name snapshot"; NULL: any field).
 * ERR_INVALID names an unknown field. An empty body is an empty object. *ret is freed with the
 * call. */
int api_body(struct api_call *c, const char *fields, json_t **ret, struct err *err);
bool api_has_name(const char *names, const char *name); /* names as in `fields` */
/* Typed members. An absent one leaves *ret unchanged; ERR_INVALID names one of the wrong type. */
int api_str(const json_t *o, const char *name, const char **ret, struct err *err);
int api_int(const json_t *o, const char *name, int64_t min, int64_t max, int64_t *ret,
	    struct err *err);
int api_bool(const json_t *o, const char *name, bool *ret, struct err *err);
/* The same for query parameters. */
int api_query_int(struct api_call *c, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err);
bool api_query_flag(struct api_call *c, const char *name); /* given, and not "0" or "false" */
void api_out(struct json_out *j); /* a JSON writer with the default limit */
void api_object(struct json_out *j); /* the same, in an object */
/* Ends all open objects and lists and the writer. Returns the text with a newline, because
 * terminals want whole lines, and without a NUL. NULL: out of memory. */
char *api_line(struct json_out *j, size_t *ret_len);
/* Sends what api_line() returns. */
int api_reply(struct api_call *c, unsigned status, struct json_out *j, struct err *err);
/* The HTTP status of an error; api_error.c has the table. */
unsigned api_status(const struct err *err);
/* Writes the body of an error as /v1 has it, and returns its status. */
unsigned api_put_error(struct api_call *c, const struct err *err, struct json_out *j);
/* Replies with an error in the form of the surface, and returns its status. */
unsigned api_error(struct api_call *c, const struct err *err);

/* JSON that several routes share. */
void api_put_session(struct api_call *c, struct json_out *j, const char *key,
		     const struct store_session *s);
/* A time as ISO 8601 in UTC; 0: null. */
void api_put_iso(struct json_out *j, const char *key, int64_t ms);
/* Writes "path", with U+FFFD if it is not valid UTF-8, and then also "path_base64". */
void api_put_path(struct json_out *j, const char *path);
void api_put_cause(struct json_out *j, const char *key, const struct store_cause *cause);
/* `of`: the session it belongs to; NULL: deleted, or the snapshot was imported. */
void api_put_snapshot(struct json_out *j, const char *key, const struct store_snapshot *s,
		      const struct store_session *of);
void api_put_exec(struct json_out *j, const char *key, const struct store_exec *x);
void api_put_hits(struct json_out *j, unsigned hits); /* "limits": names of the exceeded limits */
const char *api_outcome_name(enum session_outcome o);
/* Parses "limits", "env", "run_as", "workdir" and "class" of a body. Call template_fini(), also on
 * failure. */
int api_take_spec(const json_t *body, struct template *ret, struct err *err);
void api_put_limits(struct json_out *j, const char *key, const struct template *t);
/* Pages: api_page() parses "limit" and "after" of the query; api_list() begins the object with the
 * list; api_list_end() ends the list and adds the cursor of the next page, or null. */
int api_page(struct api_call *c, struct store_page *ret, struct err *err);
void api_list(struct json_out *j, const char *name);
void api_list_end(struct json_out *j, int64_t next);

/* ---- metrics --------------------------------------------------------------------------------- */

enum api_timer {
	API_TIME_CREATED, /* entering a session, by outcome */
	API_TIME_REUSED,
	API_TIME_RESUMED,
	API_TIME_REPLACED,
	API_TIME_EXEC, /* commands the client waited for */
	API_TIMERS,
};
void api_observe(struct api *a, enum api_timer t, uint64_t us);
void api_observe_entered(struct api *a, enum session_outcome outcome, uint64_t us);
void api_count_request(struct api *a, unsigned status); /* call once after each request */

#endif
