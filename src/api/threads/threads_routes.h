/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the threads surface. */
#ifndef LODGE_API_THREADS_THREADS_ROUTES_H
#define LODGE_API_THREADS_THREADS_ROUTES_H

#include "api/core/api_route.h"

/* clang-format off */
#define THREADS_ROUTES(ROUTE) \
	ROUTE(POST, "/create_session", threads_create_session, SESSION, 0) \
	ROUTE(GET, "/get_session", threads_get_session, SESSION, 0) \
	ROUTE(POST, "/execute", threads_execute, SESSION, 0) \
	ROUTE(POST, "/upload_file", threads_upload_file, SESSION, 0) \
	ROUTE(POST, "/download_file", threads_download_file, SESSION, 0) \
	ROUTE(GET, "/list_files", threads_list_files, SESSION, 0) \
	ROUTE(POST, "/cleanup", threads_clean_up, SESSION, 0) \
	ROUTE(GET, "/status/{session_id}", threads_get_status, SESSION, 0)
/* clang-format on */

THREADS_ROUTES(API_DECLARE_HANDLER)

#endif
