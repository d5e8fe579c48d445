/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler a method and a path lead to. */
#ifndef LODGE_API_ROUTES_H
#define LODGE_API_ROUTES_H

#include "api/core/internal.h"

/* ERR_NOT_FOUND: no such path; ERR_INVALID with sys EOPNOTSUPP: it has other methods (ret->allow);
 * ERR_INVALID: the path is malformed. */
int route_find(struct api_arena *arena, const char *method, const char *path,
	       struct route_match *ret, struct err *err);

#endif
