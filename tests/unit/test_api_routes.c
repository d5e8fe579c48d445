/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler a method and a path lead to, and which hosts a request may name. */
#include <errno.h>

#include "api/api.h"
#include "api/core/origin_check.h"
#include "api/routes.h"
#include "tap.h"

static struct api_arena arena;
static struct route_match found;
static struct err err;

static int look(const char *method, const char *path)
{
	return route_find(&arena, method, path, &found, &err);
}

static bool leads_to(const char *method, const char *path, const char *pattern)
{
	return look(method, path) == 0 && strcmp(found.route->path, pattern) == 0;
}

static void paths_lead_to_their_handlers(void)
{
	CHECK(leads_to("GET", "/", "/"));
	CHECK(leads_to("GET", "/health", "/health"));
	CHECK(leads_to("POST", "/v1/sessions", "/v1/sessions"));
	CHECK(leads_to("GET", "/v1/sessions/ses_a", "/v1/sessions/{id}"));
	CHECK_STR(found.params[0], "ses_a");
	CHECK_STR(found.params[1], "");
	CHECK(leads_to("POST", "/v1/sessions/ses_a/probe", "/v1/sessions/{id}/probe"));
	CHECK_STR(found.params[0], "ses_a");
}

static void names_are_decoded(void)
{
	CHECK(look("GET", "/v1/sessions/a%20b%C3%a9") == 0);
	CHECK_STR(found.params[0], "a b\xc3\xa9");
	CHECK(look("GET", "/v1/sessions/key:a%2Fb%2fc/stats") == 0);
	CHECK_STR(found.params[0], "key:a/b/c");
	CHECK(leads_to("GET", "/v1/se%73sions", "/v1/sessions"));
	CHECK(look("GET", "/v1/users/a+b") == 0);
	CHECK_STR(found.params[0], "a+b");
}

static void malformed_paths_are_refused(void)
{
	static const char *const bad[] = { "/v1/sessions/%",   "/v1/sessions/%2",
					   "/v1/sessions/%zz", "/v1/sessions/a%00b",
					   "/v1/users/a%2Fb",  "/v1/sessions/a%2fb",
					   "/v1/nothing/%g0",  "no-slash" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(look("GET", bad[i]) == -1 && !found.route);
		CHECK(err.code == ERR_INVALID && err.sys == 0 && api_status(&err) == 400);
	}
}

static const struct api_surface *surface_of(const char *path)
{
	return look("GET", path) == -1 && err.code == ERR_NOT_FOUND ? found.surface : NULL;
}

static void unknown_paths_belong_to_the_surface_they_begin_like(void)
{
	CHECK(surface_of("/api/sandbox/") == &chat_surface);
	CHECK(surface_of("/api/sandboxes") == &chat_surface);
	CHECK(surface_of("/api/sessions/a/b") == &chat_surface);
	CHECK(surface_of("/api/teams/a") == &projects_surface);
	CHECK(surface_of("/api/projects/") == &projects_surface);
	CHECK(surface_of("/status") == &threads_surface);
	CHECK(surface_of("/execute/x") == &threads_surface);
	CHECK(surface_of("/v1/sessions/a/b") == &v1_surface);
	CHECK(!surface_of("/v1/nothing") && !surface_of("/api/nothing"));
}

static void unknown_paths_are_not_found(void)
{
	static const char *const none[] = { "/v1",
					    "/v1/",
					    "/v1//sessions",
					    "/v1/sessions/",
					    "/v1/sessions/a/",
					    "/v1/sessions/a/probe/x",
					    "/V1/sessions",
					    "/health/",
					    "//",
					    "/a/b/c/d/e/f/g/h/i/j/k/l",
					    "/v1/../health",
					    "/v1/sessions/{id}/nothing" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK(look("GET", none[i]) == -1 && !found.route && !*found.allow);
		CHECK(err.code == ERR_NOT_FOUND && api_status(&err) == 404);
	}
}

static void other_methods_are_not_allowed(void)
{
	CHECK(look("PUT", "/v1/sessions/a") == -1 && !found.route);
	CHECK(err.sys == EOPNOTSUPP && api_status(&err) == 405);
	CHECK_STR(found.allow, "GET, PATCH, DELETE, HEAD");
	CHECK(look("get", "/health") == -1 && api_status(&err) == 405);
	CHECK_STR(found.allow, "GET, HEAD");
	CHECK(look("OPTIONS", "/v1/sessions") == -1);
	CHECK_STR(found.allow, "POST, GET, HEAD");
	CHECK_STR(found.params[0], "");
}

static void head_is_get(void)
{
	CHECK(leads_to("HEAD", "/v1/sessions/a", "/v1/sessions/{id}"));
	CHECK_STR(found.route->method, "GET");
	CHECK(look("HEAD", "/v1/sessions/a/probe") == -1 && api_status(&err) == 405);
}

static unsigned routes, doubles;

static void try_own(const struct api_route *r)
{
	char path[128];

	snprintf(path, sizeof(path), "%s", r->path);
	for (char *p = path; (p = strpbrk(p, "{}"));) /* parameter names serve as values */
		*p = 'x';
	routes++;
	doubles += look(r->method, path) != 0 || found.route != r;
}

static void every_route_is_found_once(void)
{
	routes = doubles = 0;
	api_each_route(try_own);
	CHECK(routes > 20 && doubles == 0);
}

static void loopback_names(void)
{
	static const char *const own[] = { "localhost",	 "localhost:80", "LOCALHOST",
					   "127.0.0.1",	 "127.3.2.1:99", "[::1]",
					   "[::1]:7070", "a.localhost" };
	static const char *const other[] = { "",
					     "example.com",
					     "127.0.0.1.example.com",
					     "localhost.evil",
					     "[::2]",
					     "127.0.0.1:x",
					     "xlocalhost",
					     "localhost:80:80",
					     "[::1]x",
					     "0.0.0.0",
					     "[::1",
					     ".localhost:a" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		CHECK(origin_is_loopback(own[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		CHECK(!origin_is_loopback(other[i]));
}

int main(void)
{
	RUN(paths_lead_to_their_handlers);
	RUN(names_are_decoded);
	RUN(malformed_paths_are_refused);
	RUN(unknown_paths_are_not_found);
	RUN(unknown_paths_belong_to_the_surface_they_begin_like);
	RUN(other_methods_are_not_allowed);
	RUN(head_is_get);
	RUN(every_route_is_found_once);
	RUN(loopback_names);
	arena_fini(&arena);
	return tap_done();
}
