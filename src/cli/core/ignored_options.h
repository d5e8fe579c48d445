/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLI_CORE_IGNORED_OPTIONS_H
#define LODGE_CLI_CORE_IGNORED_OPTIONS_H

#include <jansson.h>

struct api_cmd;

/* Warns on standard error about options that had no effect, because the session `name` existed with
 * other values: those of the fields in "ignored" of the answer. */
void ignored_options_warn(struct api_cmd *a, const char *name, const json_t *answer);

#endif
