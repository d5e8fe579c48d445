/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to its handler. What is wrong is told in this order: the head, the key, the path
 * and the method, what the key may, and only then what the handler finds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "api/api.h"
#include "base/clock.h"
#include "api/core/auth.h"
#include "api/core/internal.h"
#include "api/routes.h"
#include "http/ws_server.h"

enum { AWAIT_MS = 10000, AWAIT_SLICE_MS = 200 };

/* ---- making ---------------------------------------------------------------------------------- */

static void list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}
DEFINE_AUTO(char **, list_free);

/* NULL of none. */
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

static void name_worker(char *ret, size_t size)
{
	uint32_t r = 0;

	(void)getrandom(&r, sizeof(r), 0);
	snprintf(ret, size, "lodged-%08x", r);
}

int api_new(const struct api_opts *opts, struct api **ret, struct err *err)
{
	auto_call(api_free) struct api *a = calloc(1, sizeof(*a));
	struct auth_opts keys = { .engine = opts->engine,
				  .rate = opts->rate,
				  .burst = opts->burst,
				  .concurrent = opts->concurrent };

	if (!a)
		return err_sys(err, ENOMEM, "api");
	a->opts = *opts;
	a->began_us = clock_mono_us();
	name_worker(a->worker, sizeof(a->worker));
	pthread_rwlock_init(&a->names, NULL);
	pthread_mutex_init(&a->mutex, NULL);
	body_gate_init(a);
	if (thread_config_check(&a->opts.threads, err) < 0 ||
	    api_reload(a, opts->origins, opts->hosts, err) < 0 ||
	    auth_new(&keys, &a->auth, err) < 0)
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
	body_gate_fini(a);
	free(a);
}

void api_drain(struct api *a)
{
	a->draining = true;
}

/* ---- one request ----------------------------------------------------------------------------- */

struct serving {
	struct api_call call;
	struct api_arena arena;
	struct auth_pass pass;
	struct route_match where;
};

static void begin(struct serving *s, struct api *a, struct http_request *rq)
{
	memset(s, 0, sizeof(*s));
	s->call.api = a;
	s->call.engine = a->opts.engine;
	s->call.rq = rq;
	s->call.arena = &s->arena;
	for (size_t i = 0; i < 4; i++)
		s->call.params[i] = "";
}

static void end(struct serving *s)
{
	auth_leave(&s->pass);
	arena_fini(&s->arena);
}

/* A page cannot set headers of a WebSocket, but may name protocols: one of them can be the key.
 * Without a key there NULL, or with too little memory for it. */
static const char *protocol_key(struct serving *s)
{
	static const char prefix[] = "lodge.key.";
	size_t skip = sizeof(prefix) - 1, len = 0;
	const char *key =
		http_header(s->call.rq, "Upgrade") ? ws_offered(s->call.rq, prefix, &len) : NULL;

	return key ? arena_text(&s->arena, key + skip, len - skip) : NULL;
}

static int pick_key(struct serving *s, const char **ret, struct err *err)
{
	const char *authorization = http_header(s->call.rq, "Authorization");
	const char *key = http_header(s->call.rq, "X-Api-Key"), *other = protocol_key(s);

	if (other && (authorization || key))
		return err_set(err, ERR_INVALID, "a key in a header and one as a protocol");
	return auth_pick(authorization, other ? other : key, ret, err);
}

/* Whoever can reach us may, where the operator said so. A key that is sent is looked at all the
 * same. */
static bool is_anonymous(const struct serving *s, const struct err *err)
{
	return s->call.api->opts.no_auth && err->code == ERR_DENIED && err->sys == ENOKEY &&
	       !http_header(s->call.rq, "Authorization");
}

static bool is_open(const struct serving *s)
{
	return s->where.route && s->where.route->scope == API_ANYONE;
}

static bool is_options(const struct serving *s)
{
	return *s->where.allow && strcmp(http_method(s->call.rq), "OPTIONS") == 0;
}

/* The path, but for one that is malformed, is told only to who has a key. 1: it can go on. */
static int find_route(struct serving *s, int *ret, struct err *found, struct err *err)
{
	struct http_request *rq = s->call.rq;

	*ret = route_find(&s->arena, http_method(rq), http_path(rq), &s->where, found);
	s->call.surface = s->where.surface;
	if (s->call.surface && s->call.surface->no_store)
		http_set_header(rq, "Cache-Control", "no-store");
	if (*ret < 0 && found->code == ERR_INVALID && found->sys == 0) {
		*err = *found;
		return -1;
	}
	return 0;
}

static int enter(struct serving *s, struct err *err)
{
	struct api_call *c = &s->call;
	const char *key;

	if (is_open(s))
		return 0;
	if (pick_key(s, &key, err) < 0) {
		if (!is_anonymous(s, err))
			return -1;
		c->scope = API_TENANT;
		c->who = (struct caller){ .tenant = "default", .actor = "anonymous" };
		return 0;
	}
	if (auth_enter(c->api->auth, key, http_peer(c->rq), &s->pass, err) < 0)
		return -1;
	c->scope = s->pass.scope;
	c->pass = &s->pass;
	c->held_at_us = clock_mono_us();
	memcpy(c->user, s->pass.key.user, sizeof(c->user));
	memcpy(c->session, s->pass.session, sizeof(c->session));
	c->who.tenant = s->pass.key.tenant;
	c->who.actor = *c->user ? c->user : *s->pass.key.name ? s->pass.key.name : s->pass.key.id;
	return 0;
}

static int check_scope(const struct serving *s, struct err *err)
{
	static const char *const names[] = { "", "session", "tenant", "admin" };

	if (s->call.scope >= s->where.route->scope)
		return 0;
	return err_set(err, ERR_DENIED, "this key may not: a key of scope \"%s\" is needed",
		       names[s->where.route->scope]);
}

/* While the engine starts, callers wait for a while, and then know for what. */
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

static int serve(struct serving *s, struct err *err)
{
	struct api_call *c = &s->call;
	struct err not_found;
	int found;

	origin_put_cors(c->api, c->rq);
	if (origin_check(c->api, c->rq, err) < 0 || find_route(s, &found, &not_found, err) < 0)
		return -1;
	if (is_options(s)) {
		origin_put_options(c->api, c->rq, s->where.allow);
		return 0;
	}
	if (enter(s, err) < 0)
		return -1;
	if (found < 0) {
		*err = not_found;
		if (*s->where.allow)
			http_set_header(c->rq, "Allow", s->where.allow);
		return -1;
	}
	if (check_scope(s, err) < 0)
		return -1;
	if (!is_open(s) && !(s->where.route->flags & API_EARLY) && await_engine(c, err) < 0)
		return -1;
	c->route = s->where.route;
	memcpy(c->params, s->where.params, sizeof(c->params));
	return c->route->handler(c, err);
}

void api_handle(void *arg, struct http_request *rq)
{
	struct serving s;
	struct err err;

	begin(&s, arg, rq);
	if (serve(&s, &err) < 0)
		(void)api_error(&s.call, &err);
	end(&s);
}

static int may_come(struct serving *s, struct err *err)
{
	struct err not_found;
	const char *key;
	int found;

	if (origin_check(s->call.api, s->call.rq, err) < 0 ||
	    find_route(s, &found, &not_found, err) < 0)
		return -1;
	if (is_open(s) || is_options(s) || pick_key(s, &key, err) == 0)
		return 0;
	return is_anonymous(s, err) ? 0 : -1;
}

/* What can be told without asking the store, which may take its time. */
int api_admit(void *arg, struct http_request *rq)
{
	struct serving s;
	struct err err;
	int status = 0;

	begin(&s, arg, rq);
	if (may_come(&s, &err) < 0) {
		origin_put_cors(arg, rq);
		status = (int)api_error(&s.call, &err);
	}
	end(&s);
	return status;
}

/* ---- which session --------------------------------------------------------------------------- */
