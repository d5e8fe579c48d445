/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches a request. Checks run in this order, and the first failure is reported: headers, key,
 * route, scope, then the handler's own checks. Those that need no database run in api_admit(),
 * before the body is read; api_handle() continues with their result. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/api.h"
#include "base/clock.h"
#include "api/core/auth.h"
#include "api/core/internal.h"
#include "api/core/origin_check.h"
#include "api/routes.h"
#include "base/array.h"
#include "engine/event_watch.h"
#include "http/ws_server.h"
#include "service/startup.h"

enum {
	AWAIT_MS = 10000,
	AWAIT_SLICE_MS = 200,
	BODY_GATE_MAX = 4, /* large requests at once */
	BODY_GATE_TENANT_MAX = 2, /* of one tenant, so that others can go on */
};
enum { CHAT_LIFETIME_MS = 30 * 60 * 1000 };

/* ---- life cycle -------------------------------------------------------------------------------
 */

static void list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}
DEFINE_AUTO(char **, list_free);

/* The copy of an empty list is NULL. */
static int list_copy(const char *const *from, char ***ret, struct err *err)
{
	auto_call(list_free) char **list = NULL;
	size_t n = 0;

	while (from && from[n])
		n++;
	if (n) {
		list = calloc(n + 1, sizeof(*list));
		if (!list)
			return err_sys(err, ENOMEM, "names");
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = strdup(from[i]);
		if (!list[i])
			return err_sys(err, ENOMEM, "names");
	}
	*ret = steal_ptr(&list);
	return 0;
}

int api_reload(struct api *a, const char *const *origins, const char *const *hosts, struct err *err)
{
	auto_call(list_free) char **new_origins = NULL, **new_hosts = NULL, **was;

	if (list_copy(origins, &new_origins, err) < 0 || list_copy(hosts, &new_hosts, err) < 0)
		return -1;
	pthread_rwlock_wrlock(&a->names);
	was = a->origins;
	a->origins = new_origins;
	new_origins = was;
	was = a->hosts;
	a->hosts = new_hosts;
	new_hosts = was;
	pthread_rwlock_unlock(&a->names);
	was = NULL;
	return 0;
}

int api_new(const struct api_opts *opts, struct api **ret, struct err *err)
{
	auto_call(api_free) struct api *a = calloc(1, sizeof(*a));
	uint32_t random = 0;

	if (!a)
		return err_sys(err, ENOMEM, "api");
	a->opts = *opts;
	if (!a->opts.chat_lifetime_ms)
		a->opts.chat_lifetime_ms = CHAT_LIFETIME_MS;
	a->began_us = clock_mono_us();
	(void)getrandom(&random, sizeof(random), 0);
	snprintf(a->worker, sizeof(a->worker), "lodged-%08x", random);
	pthread_rwlock_init(&a->names, NULL);
	pthread_mutex_init(&a->mutex, NULL);
	gate_init(&a->body_gate, &(struct gate_limits){ .total = BODY_GATE_MAX,
							.per_tenant = BODY_GATE_TENANT_MAX });
	if (thread_config_check(&a->opts.threads, err) < 0 ||
	    api_reload(a, opts->origins, opts->hosts, err) < 0 || auth_new(opts, &a->auth, err) < 0)
		return -1;
	*ret = steal_ptr(&a);
	return 0;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	list_free(a->origins);
	list_free(a->hosts);
	auth_free(a->auth);
	pthread_rwlock_destroy(&a->names);
	pthread_mutex_destroy(&a->mutex);
	gate_fini(&a->body_gate);
	free(a);
}

void api_drain(struct api *a)
{
	a->draining = true;
	event_watch_notify(a->opts.engine); /* streams of events end */
}

/* ---- one request ----------------------------------------------------------------------------- */

/* A request from its admission, which resolves host, route and key, to the end of its handler. */
struct admission {
	struct api_call call;
	struct api_arena arena;
	struct auth_pass pass;
	struct route_match match;
	struct err no_route; /* why match.route is NULL */
	const char
		*key; /* of the request's headers or in the arena; NULL: anonymous, or not needed */
};

static void admission_free(void *arg)
{
	struct admission *s = arg;

	tenant_load_release_all(&s->call.share);
	auth_leave(&s->pass);
	arena_fini(&s->arena);
	free(s);
}

static void release_call(struct api_call *c)
{
	admission_free((char *)c - offsetof(struct admission, call));
}

static struct admission *admission_new(struct api *a, struct http_request *rq)
{
	struct admission *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->call.api = a;
	s->call.engine = a->opts.engine;
	s->call.rq = rq;
	s->call.arena = &s->arena;
	s->call.release = release_call;
	for (size_t i = 0; i < ARRAY_LEN(s->call.params); i++)
		s->call.params[i] = "";
	return s;
}

/* Browsers cannot set the headers of a WebSocket, but they can offer protocols: one of them may be
 * the key. NULL: no key there, or out of memory. */
static const char *protocol_key(struct admission *s)
{
	static const char prefix[] = "lodge.key.";
	size_t skip = sizeof(prefix) - 1, len = 0;
	const char *key =
		http_header(s->call.rq, "Upgrade") ? ws_offered(s->call.rq, prefix, &len) : NULL;

	return key ? arena_text(&s->arena, key + skip, len - skip) : NULL;
}

static int pick_key(struct admission *s, struct err *err)
{
	const char *authorization = http_header(s->call.rq, "Authorization");
	const char *key = http_header(s->call.rq, "X-Api-Key"), *other = protocol_key(s);

	if (other && (authorization || key))
		return err_set(err, ERR_INVALID,
			       "send the API key in a header or as a protocol, not both");
	return auth_pick(authorization, other ? other : key, &s->key, err);
}

static bool is_open(const struct admission *s)
{
	return s->match.route && s->match.route->scope == API_ANYONE;
}

static bool is_urgent(const struct admission *s)
{
	return s->match.route && s->match.route->flags & API_URGENT;
}

static bool is_key_optional(const struct admission *s)
{
	return is_open(s) && s->match.route->flags & API_KEY_OPTIONAL;
}

/* On an open route, and on all with no_auth, a request without a key is allowed. A key that is sent
 * is checked all the same. */
static bool is_anonymous(const struct admission *s, const struct err *err)
{
	return (is_open(s) || s->call.api->opts.no_auth) && err->code == ERR_DENIED &&
	       err->sys == ENOKEY && !http_header(s->call.rq, "Authorization");
}

static bool is_options(const struct admission *s)
{
	return *s->match.allow && strcmp(http_method(s->call.rq), "OPTIONS") == 0;
}

/* Only a malformed path fails here. That a route does not exist is reported after the key was
 * checked. */
static int find_route(struct admission *s, struct err *err)
{
	struct http_request *rq = s->call.rq;
	int r = route_find(&s->arena, http_method(rq), http_path(rq), &s->match, &s->no_route);

	s->call.surface = s->match.surface;
	if (s->call.surface && s->call.surface->no_store)
		http_set_header(rq, "Cache-Control", "no-store");
	if (r < 0 && s->no_route.code == ERR_INVALID && s->no_route.sys == 0) {
		*err = s->no_route;
		return -1;
	}
	return 0;
}

/* Everything that can be checked without the database, which may block. */
static int admit(struct admission *s, struct err *err)
{
	struct err ignored;

	if (origin_check(s->call.api, s->call.rq, err) < 0 || find_route(s, err) < 0)
		return -1;
	if (is_key_optional(s))
		(void)pick_key(s, &ignored);
	if (is_options(s) || (is_open(s) && !(s->match.route->flags & API_KEY_CHECKED)) ||
	    pick_key(s, err) == 0)
		return 0;
	return is_anonymous(s, err) ? 0 : -1;
}

int api_admit(void *arg, struct http_request *rq)
{
	struct admission *s = admission_new(arg, rq);
	struct api_call bare = { .api = arg, .rq = rq };
	struct err err;
	int status;

	if (s && admit(s, &err) == 0) {
		if (is_urgent(s))
			http_set_urgent(rq);
		http_put_context(rq, s, admission_free);
		return 0;
	}
	if (!s)
		err_sys(&err, ENOMEM, "request");
	origin_put_cors(arg, rq);
	status = (int)api_error(s ? &s->call : &bare, &err);
	if (s)
		admission_free(s);
	return status;
}

static int check_key(struct admission *s, struct err *err)
{
	struct auth *a = s->call.api->auth;
	const char *peer = http_peer(s->call.rq);
	int r = is_urgent(s) ? auth_identify(a, s->key, peer, &s->pass, err)
			     : auth_enter(a, s->key, peer, &s->pass, err);

	if (r == 0 || err->sys == EUSERS) /* a key over its rate is valid too */
		http_trust(s->call.rq);
	return r;
}

static void authenticate_optional(struct admission *s)
{
	struct err ignored;

	if (s->key && check_key(s, &ignored) == 0)
		s->call.scope = s->pass.scope;
}

static int authenticate(struct admission *s, struct err *err)
{
	struct api_call *c = &s->call;

	if (is_key_optional(s))
		authenticate_optional(s);
	if (is_open(s) && (!s->key || is_key_optional(s)))
		return 0;
	if (!s->key) {
		c->scope = API_TENANT;
		c->caller = (struct caller){ .tenant = "default", .actor = "anonymous" };
		return 0;
	}
	if (check_key(s, err) < 0)
		return -1;
	c->scope = s->pass.scope;
	c->pass = &s->pass;
	c->held_at_us = clock_mono_us();
	memcpy(c->user, s->pass.key.user, sizeof(c->user));
	memcpy(c->session, s->pass.session, sizeof(c->session));
	c->caller.tenant = s->pass.key.tenant;
	c->caller.actor = *c->user	      ? c->user
			  : *s->pass.key.name ? s->pass.key.name
					      : s->pass.key.id;
	/* the compatible APIs serve the application itself, whatever the scope of its key */
	c->caller.is_admin = c->scope == API_ADMIN && c->surface == &v1_surface;
	return 0;
}

static int check_scope(const struct admission *s, struct err *err)
{
	static const char *const names[] = { "", "session", "tenant", "admin" };

	if (s->call.scope >= s->match.route->scope)
		return 0;
	return err_set(err, ERR_DENIED, "permission denied: requires a key with scope \"%s\"",
		       names[s->match.route->scope]);
}

/* Requests wait a while for the engine to start; the error then says how far it is. */
static int await_engine(struct api_call *c, struct err *err)
{
	for (unsigned ms = 0; !engine_is_ready(c->engine); ms += AWAIT_SLICE_MS) {
		if (engine_wait_ready(c->engine, AWAIT_SLICE_MS, err) == 0)
			return 0;
		if (err->code != ERR_TIMEOUT)
			return -1;
		if (ms >= AWAIT_MS || api_is_draining(c->api) || http_is_gone(c->rq)) {
			err->code = ERR_UNAVAILABLE;
			return -1;
		}
	}
	return 0;
}

static int serve(struct admission *s, struct err *err)
{
	struct api_call *c = &s->call;
	const struct api_route *route = s->match.route;

	origin_put_cors(c->api, c->rq);
	if (is_options(s)) {
		origin_put_options(c->api, c->rq, s->match.allow);
		return 0;
	}
	if (authenticate(s, err) < 0 || (!is_urgent(s) && api_take(c, TENANT_REQUESTS, 1, err) < 0))
		return -1;
	(void)tenant_load_set_caller(c->caller.tenant);
	if (!route) {
		*err = s->no_route;
		if (*s->match.allow)
			http_set_header(c->rq, "Allow", s->match.allow);
		return -1;
	}
	if (check_scope(s, err) < 0)
		return -1;
	if (!is_open(s) && !(route->flags & API_EARLY) && await_engine(c, err) < 0)
		return -1;
	if (c->surface->strict_query && strcmp(route->query, "*") != 0 &&
	    api_query_check(c, route->query, err) < 0)
		return -1;
	c->route = route;
	memcpy(c->params, s->match.params, sizeof(c->params));
	return route->handler(c, err);
}

void api_handle(void *arg, struct http_request *rq)
{
	struct admission *s = http_take_context(rq);
	struct err err;

	(void)arg;
	if (serve(s, &err) < 0)
		(void)api_error(&s->call, &err);
	(void)tenant_load_set_caller(NULL);
	if (!s->call.detached)
		admission_free(s);
}
