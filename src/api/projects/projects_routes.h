/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the projects surface. */
#ifndef LODGE_API_PROJECTS_PROJECTS_ROUTES_H
#define LODGE_API_PROJECTS_PROJECTS_ROUTES_H

#include "api/core/api_route.h"

#define PROJECT_PATH "/api/projects/{project}"
#define FRAGMENTS_PATH PROJECT_PATH "/fragments"
#define MEMBERS_PATH "/api/teams/{team}/members"

/* clang-format off */
#define PROJECTS_ROUTES(ROUTE) \
	ROUTE(POST, "/api/switch-project", projects_switch, SESSION, 0) \
	ROUTE(POST, "/api/cleanup-sandboxes", projects_clean_up, SESSION, 0) \
	ROUTE(GET, "/api/cleanup-sandboxes", projects_list_sandboxes, SESSION, 0) \
	ROUTE(POST, "/api/projects", projects_create, SESSION, 0) \
	ROUTE(GET, "/api/projects", projects_list, SESSION, 0) \
	ROUTE(GET, PROJECT_PATH, projects_get, SESSION, 0) \
	ROUTE(DELETE, PROJECT_PATH, projects_delete, SESSION, 0) \
	ROUTE(POST, FRAGMENTS_PATH, projects_create_fragment, SESSION, API_LARGE_BODY) \
	ROUTE(GET, FRAGMENTS_PATH, projects_list_fragments, SESSION, 0) \
	ROUTE(GET, FRAGMENTS_PATH "/{fragment}", projects_get_fragment, SESSION, 0) \
	ROUTE(DELETE, FRAGMENTS_PATH "/{fragment}", projects_delete_fragment, SESSION, 0) \
	ROUTE(GET, MEMBERS_PATH, projects_list_members, SESSION, 0) \
	ROUTE(PUT, MEMBERS_PATH "/{user}", projects_put_member, SESSION, 0) \
	ROUTE(DELETE, MEMBERS_PATH "/{user}", projects_delete_member, SESSION, 0)
/* clang-format on */

PROJECTS_ROUTES(API_DECLARE_HANDLER)

#endif
