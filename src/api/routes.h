/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the route of a request. */
#ifndef LODGE_API_ROUTES_H
#define LODGE_API_ROUTES_H

#include "api/core/internal.h"

struct route_match {
	const struct api_route *route;
	/* also set if the path has no such method, or only begins like a route of this surface */
	const struct api_surface *surface;
	const char *params[4]; /* in the arena */
	char allow[64]; /* methods of the path, if it exists */
};
/* ERR_NOT_FOUND: no such path. ERR_INVALID with sys EOPNOTSUPP: other methods only (ret->allow);
 * otherwise malformed. */
int route_find(struct api_arena *arena, const char *method, const char *path,
	       struct route_match *ret, struct err *err);
/* Calls fn for each route, for the test that compares them with spec/openapi.json. */
void api_each_route(void (*fn)(const struct api_route *r));

#endif
