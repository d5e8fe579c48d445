/* SPDX-License-Identifier: Apache-2.0 */
/* Templates whose environment is to be captured. */
#ifndef LODGE_ENGINE_ENVIRONMENT_REQUEST_H
#define LODGE_ENGINE_ENVIRONMENT_REQUEST_H

#include <stdbool.h>

struct engine;

/* A session of it was made, or (`changed`) it says something else now: the sweep looks, if the
 * option says so and it does not know yet. */
void environment_request_add(struct engine *e, const char *template, bool changed);

#endif
