/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the chat surface. */
#ifndef LODGE_API_CHAT_CHAT_ROUTES_H
#define LODGE_API_CHAT_CHAT_ROUTES_H

#include "api/core/api_route.h"

/* clang-format off */
#define CHAT_ROUTES(ROUTE) \
	ROUTE(POST, "/api/sessions", chat_create_session, SESSION, 0) \
	ROUTE(PATCH, "/api/sessions/{id}", chat_archive_session, SESSION, 0) \
	ROUTE(POST, "/api/sandbox", chat_create_sandbox, SESSION, 0) \
	ROUTE(DELETE, "/api/sandbox", chat_stop_sandbox, SESSION, 0) \
	ROUTE(GET, "/api/sandbox/status", chat_get_status, SESSION, 0) \
	ROUTE(GET, "/api/sandbox/reconnect", chat_reconnect, SESSION, 0) \
	ROUTE(POST, "/api/sandbox/extend", chat_extend, SESSION, 0) \
	ROUTE(POST, "/api/sandbox/activity", chat_touch, SESSION, 0) \
	ROUTE(POST, "/api/sandbox/snapshot", chat_create_snapshot, SESSION, 0) \
	ROUTE(PUT, "/api/sandbox/snapshot", chat_resume_snapshot, SESSION, 0)
/* clang-format on */

CHAT_ROUTES(API_DECLARE_HANDLER)

#endif
