/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/core/api_cmd.h"

const char *command_verb(const struct command *cmd)
{
	const char *space = strrchr(cmd->name, ' ');

	return space ? space + 1 : cmd->name;
}

bool command_is_called(const struct command *cmd, const char *word)
{
	return strcmp(word, command_verb(cmd)) == 0 ||
	       (cmd->alias && strcmp(word, cmd->alias) == 0);
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Whether an option is given, in any of its forms. */
static bool has_option(int argc, char **argv, const char *option)
{
	size_t n = strlen(option);

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strncmp(argv[i], option, n) == 0 && (!argv[i][n] || argv[i][n] == '='))
			return true;
	return false;
}

/* ---- on this machine ------------------------------------------------------------------------- */

static bool is_local(int argc, char **argv)
{
	auto_fini(target_fini) struct target w = { 0 };
	struct err err;

	if (has_option(argc, argv, "--local") || has_option(argc, argv, "--data") ||
	    has_option(argc, argv, "--home"))
		return true;
	if (has_option(argc, argv, "--url") || target_find(&w, &err) == 0 ||
	    err.code != ERR_UNAVAILABLE)
		return false;
	api_cmd_hint("lodge: no lodged found; using the templates of this machine (--local)");
	return true;
}

static int run_one(const struct command *cmd, int argc, char **argv)
{
	bool help = has_option(argc, argv, "--help") || has_option(argc, argv, "-h");

	return api_cmd_main(cmd->twin && !help && is_local(argc, argv) ? cmd->twin : cmd, argc,
			    argv);
}

/* ---- commands of several --------------------------------------------------------------------- */

static void print_subs(const struct command *cmd, FILE *to)
{
	fprintf(to, "%c%s.\n\nUsage: lodge %s [COMMAND] [OPTION...] [ARGUMENT...]\n\n",
		toupper(cmd->summary[0]), cmd->summary + 1, cmd->name);
	for (const struct command *const *s = cmd->subs; *s; s++)
		fprintf(to, "  %-10s  %s%s\n", command_verb(*s), (*s)->summary,
			s == cmd->subs ? " (default)" : "");
	if (cmd->more)
		fprintf(to, "\n%s", cmd->more);
}

/* Parses a copy, because the words may be those of another command. */
static bool has_operands(const struct command *cmd, int argc, char **argv)
{
	auto_free void *opts = calloc(1, cmd->size ? cmd->size : sizeof(struct api_cmd));
	auto_free char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	struct err ignored;
	int first;

	if (!opts || !copy)
		return false;
	memcpy(copy, argv, sizeof(*copy) * (size_t)argc);
	return cli_option_parse(cmd, argc, copy, opts, &first, &ignored) == 0 && first < argc;
}

static int main_of_subs(const struct command *cmd, int argc, char **argv)
{
	if (argc > 1 && is_help(argv[1])) {
		print_subs(cmd, stdout);
		return 0;
	}
	if (argc > 1 && cmd->unnamed && has_operands(cmd->unnamed, argc, argv))
		return run_one(cmd->unnamed, argc, argv);
	if (cmd->subs[0] && (argc < 2 || argv[1][0] == '-'))
		return run_one(cmd->subs[0], argc, argv);
	fprintf(stderr, "lodge: unknown command \"%s %.40s\" (try lodge %s --help)\n", cmd->name,
		argv[1], cmd->name);
	return CLI_EXIT_USAGE;
}

int command_main(const struct command *cmd, int argc, char **argv)
{
	for (const struct command *const *s = cmd->subs; s && *s && argc > 1; s++)
		if (command_is_called(*s, argv[1]))
			return run_one(*s, argc - 1, argv + 1);
	return cmd->subs ? main_of_subs(cmd, argc, argv) : run_one(cmd, argc, argv);
}
