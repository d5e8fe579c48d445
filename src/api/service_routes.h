/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that need no key: documentation, health, metrics. */
#ifndef LODGE_API_SERVICE_ROUTES_H
#define LODGE_API_SERVICE_ROUTES_H

#include "api/core/api_route.h"

/* clang-format off */
#define SERVICE_ROUTES(ROUTE) \
	ROUTE(GET, "/", service_get_index, ANYONE, 0) \
	ROUTE(GET, "/health", service_get_health, ANYONE, API_KEY_OPTIONAL | API_URGENT) \
	ROUTE(GET, "/ready", service_get_ready, ANYONE, API_URGENT) \
	ROUTE(GET, "/metrics", service_get_metrics, ANYONE, API_KEY_CHECKED | API_URGENT) \
	ROUTE(GET, "/openapi.json", service_get_openapi, ANYONE, 0) \
	ROUTE(GET, "/docs", service_get_docs, ANYONE, 0)
/* clang-format on */

SERVICE_ROUTES(API_DECLARE_HANDLER)

#endif
