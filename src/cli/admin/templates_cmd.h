/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of lodge templates. */
#ifndef LODGE_CLI_ADMIN_TEMPLATES_CMD_H
#define LODGE_CLI_ADMIN_TEMPLATES_CMD_H

#include "cli/core/api_cmd.h"

/* clang-format off */
#define TEMPLATES_SPEC                                                                             \
	LIMIT_OPT_SPEC,                                                                            \
	{ "policy", 0, "NAME", ask_policy, "the policy of sessions that name none" }
/* clang-format on */

/* Whether any of these options was given, or --unset. */
bool templates_is_set(const struct api_cmd *a);
/* They as a body of PATCH for a template that is `now` as it is; NULL: it says nothing yet. Single
 * variables and limits are added to what there is, which the service takes as a whole. */
int templates_spec(struct api_cmd *a, const json_t *now, json_t *body, struct err *err);

extern const struct api_cmd_command templates_add;

#endif
