/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all commands. */
#ifndef LODGE_CLI_COMMANDS_H
#define LODGE_CLI_COMMANDS_H

#include "cli/core/command.h"

/* In the order of --help, below the title `group`; one without a command ends them. */
struct command_entry {
	const char *group;
	const struct command *command;
};
extern const struct command_entry commands[];

#endif
