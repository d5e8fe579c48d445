/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the projects surface. */
#ifndef LODGE_API_PROJECTS_PROJECTS_H
#define LODGE_API_PROJECTS_PROJECTS_H

#include "api/core/api_call.h"
#include "api/projects/projects_routes.h"

/* The acting end user. A user token acts for its user and may not name another: ERR_DENIED. Other
 * keys name one in "userId" of the body (NULL: of the query); without it ERR_INVALID. */
int projects_user(struct api_call *c, const json_t *body, const char **ret, struct err *err);

#endif
