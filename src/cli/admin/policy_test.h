/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLI_ADMIN_POLICY_TEST_H
#define LODGE_CLI_ADMIN_POLICY_TEST_H

#include "cli/core/command.h"

extern const struct command policy_test;

#endif
