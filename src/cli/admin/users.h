/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of lodge users. */
#ifndef LODGE_CLI_ADMIN_USERS_H
#define LODGE_CLI_ADMIN_USERS_H

#include "cli/core/api_cmd.h"

extern const struct api_cmd_command users_show, users_quota;

#endif
