/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a template, shared by `lodge run` and
 * `lodge template`: their struct is a struct template. */
#ifndef LODGE_CLI_CORE_LIMIT_OPTIONS_H
#define LODGE_CLI_CORE_LIMIT_OPTIONS_H

#include "cli/core/options.h"
#include "sandbox/template/template.h"

extern const struct cli_option template_options[];
/* Of sandboxes on this machine, besides: --require-limits. */
extern const struct cli_option require_options[];

/* Rejects options that contradict each other. */
int limit_opt_check(const struct template *t, struct err *err);

#endif
