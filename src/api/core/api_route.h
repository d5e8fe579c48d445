/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of routes. A surface lists its routes in its own *_routes.h, one row each:
 *
 *	ROUTE(GET, "/v1/users", v1_list_users, SESSION, 0, "q sort order limit")
 *
 * The last argument names the query parameters; a route without any omits it.
 * The row declares the handler and fills the table, so a row without a handler or scope does not
 * link, and a handler without a row does not compile. */
#ifndef LODGE_API_CORE_API_ROUTE_H
#define LODGE_API_CORE_API_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct api_call;
struct json_out;

/* The least scope a key must have. Each scope includes the ones before it. */
enum api_scope {
	API_ANYONE, /* no key needed: health, documentation */
	API_SESSION, /* any key of the tenant, also one limited to a user or a session */
	API_TENANT, /* users, quotas, projects */
	API_ADMIN, /* keys, templates, all tenants */
};

enum { API_LARGE_BODY_MAX = 64 << 20 };

enum api_flag {
	API_EARLY = 1 << 0, /* served while the engine starts; routes without a key always are */
	API_LARGE_BODY = 1 << 1, /* the files of a fragment: up to API_LARGE_BODY_MAX, any byte */
	API_KEY_OPTIONAL =
		1 << 2, /* no key needed, but an admin key shows more; a bad one is ignored */
	API_KEY_CHECKED =
		1 << 3, /* no key needed, but an admin key shows more; a bad one is refused */
	/* never refused or delayed for load; the handler must not wait for anything */
	API_URGENT = 1 << 4,
};

/* Returns 0 after it has replied, or -1 with err set: the caller then sends the error in the form
 * of the surface. */
typedef int api_fn(struct api_call *c, struct err *err);

struct api_route {
	const char *method;
	const char *path; /* "/v1/sessions/{id}/files/{path...}": the last may contain slashes */
	api_fn *handler;
	enum api_scope scope;
	unsigned flags; /* enum api_flag */
	/* names of its query parameters, separated by blanks; "*": the handler checks them */
	const char *query;
};

/* A family of routes with one form of error. */
struct api_surface {
	const struct api_route *routes; /* ends with an empty row */
	/* Writes the body of an error, an object, and returns its HTTP status. */
	unsigned (*put_error)(struct api_call *c, const struct err *err, struct json_out *j);
	bool no_store; /* responses have "Cache-Control: no-store" */
	bool strict_query; /* other query parameters than those of the route are refused */
	/* A body without a Content-Type is taken for JSON; if the request has a key in a header,
	 * a body of any type but multipart. */
	bool untyped_json;
};

#define API_DECLARE_HANDLER(method, path, handler, scope, flags, ...) api_fn handler;
#define API_ROW(method, path, handler, scope, flags, ...)                                          \
	{ #method, path, handler, API_##scope, flags, "" __VA_ARGS__ },
#define API_TABLE(routes) ((const struct api_route[]){ routes(API_ROW){ 0 } })

/* All surfaces. A surface that is missing here has no declaration and is not served. */
#define API_SURFACES(SURFACE)                                                                      \
	SURFACE(service) SURFACE(v1) SURFACE(chat) SURFACE(threads) SURFACE(projects)
#define API_DECLARE_SURFACE(name) extern const struct api_surface name##_surface;
API_SURFACES(API_DECLARE_SURFACE)

#endif
