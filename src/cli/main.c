/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/cmd.h"
#include "cli/opt.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

/* One row is one command; the rows of a group stand together. */
static const struct {
	const char *group, *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "sessions", "enter", cmd_enter, "a shell in a session, made if it is not there" },

	{ "commands", "exec", cmd_exec, "run a command in a session" },
	{ "commands", "ps", cmd_ps, "list the commands of a session" },
	{ "commands", "logs", cmd_logs, "show what a command wrote" },
	{ "commands", "attach", cmd_attach, "follow a command that runs" },
	{ "commands", "kill", cmd_kill, "end a command, or send it a signal" },

	{ "administration", "login", cmd_login, "remember which lodged to ask" },

	{ "this machine", "run", cmd_run, "run a command in a sandbox of its own" },
	{ "this machine", "template", cmd_template,
	  "add, list and remove what sandboxes start from" },
	{ "this machine", "policy", cmd_policy, "see what a policy of commands says of one" },
	{ "this machine", "doctor", cmd_doctor,
	  "see what this machine offers and what is missing" },
};

static int help(FILE *to)
{
	const char *group = "";

	fputs("usage: lodge COMMAND ...\nSandboxes: sessions of a lodged, and of this machine.\n",
	      to);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(group, commands[i].group) != 0)
			fprintf(to, "\n%s\n", commands[i].group);
		group = commands[i].group;
		fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
	}
	fprintf(to, "\n  --version    show the version\n  --help       show this; also behind each "
		    "command\n");
	return 0;
}

/* A closed standard descriptor would become one of ours, and get a command's bytes. */
static void open_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(OPT_EXIT_FAILED);
}

int main(int argc, char **argv)
{
	open_standard_fds();
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		help(stderr);
		return OPT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(stdout);
	if (!strcmp(argv[1], "--version")) {
		puts("lodge " LODGE_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "lodge: unknown %s \"%.40s\" (try lodge --help)\n",
		argv[1][0] == '-' ? "option" : "command", argv[1]);
	return OPT_EXIT_USAGE;
}
