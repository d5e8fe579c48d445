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
#include "engine/tenant_load.h"
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
	const struct api_surface *surface; /* NULL until the path is known; if unknown, a guess */
	struct api_arena *arena; /* memory that is freed with the call */
	struct auth_pass *pass; /* NULL: no key was required */
	int64_t held_at_us; /* last check of api_call_key_holds() */
	struct gate_ticket body_place; /* from body_gate_enter() */
	void (*release)(struct api_call *c); /* frees it; for api_call_detach() */
	bool detached;
	struct tenant_share share; /* what the request has of its tenant's part of the service */
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
	int64_t chat_lifetime_ms; /* of sandboxes of the chat API until they expire; 0: 30 min */
	bool no_auth; /* requests without a key act for tenant "default" */
	/* Receives the full error of each response with status 500; may be NULL. */
	void (*on_error)(const char *request, const struct err *err);
};

/* ---- for handlers ---------------------------------------------------------------------------- */

bool api_is_draining(const struct api *a);
/* Whether the key is still valid. For long calls; checks at most once a second. */
bool api_call_key_holds(struct api_call *c);
/* Whether only time ends it: its removal is an event. */
bool api_call_key_expires(const struct api_call *c);
/* Takes something of the tenant's part of the service until the end of the request: ERR_LIMIT with
 * sys EUSERS. Call it before anything is started. No effect on routes without a tenant. */
int api_take(struct api_call *c, enum tenant_resource what, uint64_t amount, struct err *err);
/* The client disconnected, the service shuts down, or the key is no longer valid. */
bool api_is_cancelled(struct api_call *c);
/* The handler has begun a stream, which goes on after it by `step` (see http_stream_detach()). The
 * call, its arena and what the arena keeps live until the stream has ended. */
void api_call_detach(struct api_call *c, int (*step)(void *arg), void *arg);
/* Resolves the {id} of a path: the id of a session or of its sandbox, or "key:KEY". ERR_NOT_FOUND
 * if the token is for another session or user. */
int api_ref(struct api_call *c, const char *id, struct session_ref *ret, struct err *err);
/* Whether a session or user token is for this one. True for other keys. */
bool api_is_own(const struct api_call *c, const char *session, const char *user);
/* Whether ref names a sandbox that ended, of a session that the token may use. */
bool api_owns_ended(struct api_call *c, const struct session_ref *ref);
/* Checks that the token may see objects of this session ("": of none): ERR_NOT_FOUND. */
int api_may_see(struct api_call *c, const char *session, struct err *err);
/* The record of the session in the first path parameter. */
int api_session(struct api_call *c, struct store_session *ret, struct err *err);

/* the rest of what handlers use */
#include "api/core/api_body.h"
#include "api/core/api_error.h"
#include "api/core/to_json.h"

#endif
