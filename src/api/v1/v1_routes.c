/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1_routes.h"

#include "api/core/api_call.h"

const struct api_surface v1_surface = { .routes = API_TABLE(V1_ROUTES),
					.put_error = api_put_error };
