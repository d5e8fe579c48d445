/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"

const char *command_verb(const struct command *cmd)
{
	const char *space = strrchr(cmd->name, ' ');

	return space ? space + 1 : cmd->name;
}

static void print_subs(const struct command *cmd, FILE *to)
{
	fprintf(to, "%c%s.\n\nUsage: lodge %s COMMAND [OPTION...] [ARGUMENT...]\n\n",
		toupper(cmd->summary[0]), cmd->summary + 1, cmd->name);
	for (const struct command *const *s = cmd->subs; *s; s++)
		fprintf(to, "  %-10s  %s\n", command_verb(*s), (*s)->summary);
	if (cmd->more)
		fprintf(to, "\n%s", cmd->more);
}

static int main_of_subs(const struct command *cmd, int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_subs(cmd, stdout);
		return 0;
	}
	if (argc < 2 && cmd->needs_sub) {
		print_subs(cmd, stderr);
		return CLI_EXIT_USAGE;
	}
	if (argc < 2 || (argv[1][0] == '-' && !cmd->needs_sub))
		return api_cmd_main(cmd->subs[0], argc, argv);
	fprintf(stderr, "lodge: unknown command \"%s %.40s\" (try lodge %s --help)\n", cmd->name,
		argv[1], cmd->name);
	return CLI_EXIT_USAGE;
}

int command_main(const struct command *cmd, int argc, char **argv)
{
	for (const struct command *const *s = cmd->subs; s && *s && argc > 1; s++)
		if (strcmp(argv[1], command_verb(*s)) == 0)
			return api_cmd_main(*s, argc - 1, argv + 1);
	return cmd->subs && !cmd->run && !cmd->method ? main_of_subs(cmd, argc, argv)
						      : api_cmd_main(cmd, argc, argv);
}
