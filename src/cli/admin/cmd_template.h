/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of lodge template. */
#ifndef LODGE_CLI_ADMIN_CMD_TEMPLATE_H
#define LODGE_CLI_ADMIN_CMD_TEMPLATE_H

#include "cli/core/api_cmd.h"
#include "cli/core/limit_options.h"

struct template_opts {
	struct api_cmd a;
	struct template spec;
	const char *policy, *unset, *snapshot, *tenant;
	bool oci;
};

/* What a template sets for its sessions. */
extern const struct cli_option templates_spec_options[];
void templates_init(struct api_cmd *a);
void templates_fini(struct api_cmd *a);
/* Whether any of them was given, or --unset. */
bool templates_is_set(const struct template_opts *o);
/* The body of a PATCH for a template that is `now`, or of a POST if that is NULL. The service takes
 * variables and limits as a whole, so single ones are added to the present ones. */
int templates_spec(struct template_opts *o, const json_t *now, json_t *body, struct err *err);

#endif
