/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the projects surface have from each other. */
#ifndef LODGE_API_PROJECTS_PROJECTS_H
#define LODGE_API_PROJECTS_PROJECTS_H

#include "api/core/api_call.h"
#include "api/projects/projects_routes.h"

/* The end user who acts. A token for one user is that user's, and may name no other: ERR_DENIED.
 * With an application's key "userId" of the body (NULL: of the query) names one; without it *ret is
 * NULL. */
int projects_caller(struct api_call *c, const json_t *body, const char **ret, struct err *err);
/* The same where there must be one: ERR_INVALID that names it. */
int projects_user(struct api_call *c, const json_t *body, const char **ret, struct err *err);

api_fn projects_switch, projects_clean_up, projects_list_sandboxes;

#endif
