/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template add. */
#ifndef LODGE_CLI_LOCAL_LOCAL_TEMPLATE_ADD_H
#define LODGE_CLI_LOCAL_LOCAL_TEMPLATE_ADD_H

#include "base/err.h"
#include "cli/core/command.h"

struct keeper_client;

extern const struct command local_template_add;
/* Removes the files of a template; ERR_NOT_FOUND if there are none. */
int local_template_delete(struct keeper_client *k, const char *name, struct err *err);

#endif
