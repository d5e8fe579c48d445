/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/core/commands.h"
#include "cli/core/options.h"

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
	{ "sessions", "new", cmd_new, "make a session" },
	{ "sessions", "ls", cmd_ls, "list sessions" },
	{ "sessions", "show", cmd_show, "show all of one" },
	{ "sessions", "cp", cmd_cp, "copy files in and out" },
	{ "sessions", "pause", cmd_pause, "freeze processes" },
	{ "sessions", "unpause", cmd_unpause, "let them go on" },
	{ "sessions", "hibernate", cmd_hibernate, "end processes, keep files" },
	{ "sessions", "resume", cmd_resume, "a sandbox for one that sleeps" },
	{ "sessions", "extend", cmd_extend, "give later deadlines" },
	{ "sessions", "rm", cmd_rm, "destroy sessions with their files" },

	{ "commands", "exec", cmd_exec, "run a command in a session" },
	{ "commands", "ps", cmd_ps, "list the commands of a session" },
	{ "commands", "logs", cmd_logs, "show what a command wrote" },
	{ "commands", "attach", cmd_attach, "follow a command that runs" },
	{ "commands", "kill", cmd_kill, "end a command, or send it a signal" },

	{ "snapshots", "snapshot", cmd_snapshot, "take one, or remove some" },
	{ "snapshots", "snapshots", cmd_snapshots, "list all, or those of a session" },
	{ "snapshots", "diff", cmd_diff, "which files changed since one" },
	{ "snapshots", "fork", cmd_fork, "new sessions from the files of one" },
	{ "snapshots", "rollback", cmd_rollback, "take a session back to one" },
	{ "snapshots", "export", cmd_export, "write one as a file" },
	{ "snapshots", "import", cmd_import, "read one from a file" },

	{ "users", "users", cmd_users, "list users, show one, set quotas" },
	{ "users", "cleanup", cmd_cleanup, "destroy all that a user has" },
	{ "users", "projects", cmd_projects, "list, make and remove projects" },
	{ "users", "teams", cmd_teams, "who is in a team" },
	{ "users", "switch", cmd_switch, "move a user's sandbox to a project" },

	{ "administration", "status", cmd_status, "how the service is" },
	{ "administration", "top", cmd_top, "what sandboxes use, live" },
	{ "administration", "events", cmd_events, "what happened, and what happens" },
	{ "administration", "templates", cmd_templates, "what sessions of the service start from" },
	{ "administration", "keys", cmd_keys, "list, make and remove keys" },
	{ "administration", "policy", cmd_policy,
	  "what sessions may have; what a policy says of a command" },
	{ "administration", "bench", cmd_bench, "measure how fast the service answers" },
	{ "administration", "login", cmd_login, "remember which lodged to ask" },

	{ "this machine", "run", cmd_run, "run a command in a sandbox of its own" },
	{ "this machine", "template", cmd_template, "what sandboxes of lodge run start from" },
	{ "this machine", "doctor", cmd_doctor,
	  "see what this machine offers and what is missing" },
	{ "this machine", "completion", cmd_completion, "print a completion for bash or zsh" },
};

const char *cmd_name(unsigned i, const char **ret_summary)
{
	if (i >= ARRAY_LEN(commands))
		return NULL;
	*ret_summary = commands[i].summary;
	return commands[i].name;
}

int cmd_call(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc, argv);
	return -1;
}

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

/* ---- names that are none --------------------------------------------------------------------- */

enum { NAME_MOST = 16, TYPOS = 2 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters are to be added, taken away or changed. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MOST + 1], n = (unsigned)strlen(b);

	if (strlen(a) > NAME_MOST || n > NAME_MOST)
		return UINT_MAX;
	for (unsigned k = 0; k <= n; k++)
		row[k] = k;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned before = row[0]++; /* of the row above, one to the left */

		for (unsigned k = 1; k <= n; k++) {
			unsigned above = row[k];

			row[k] = least(least(above, row[k - 1]) + 1,
				       before + (a[i - 1] != b[k - 1]));
			before = above;
		}
	}
	return row[n];
}

/* The most alike; NULL: none is. Half of a word wrong is another word. */
static const char *nearest(const char *word)
{
	unsigned best = TYPOS + 1;
	const char *name = NULL;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		unsigned d = distance(word, commands[i].name);

		if (d < best && d <= strlen(word) / 2) {
			best = d;
			name = commands[i].name;
		}
	}
	return name;
}

static int unknown(const char *word)
{
	const char *name = nearest(word);

	fprintf(stderr, "lodge: unknown %s \"%.40s\" (", word[0] == '-' ? "option" : "command",
		word);
	if (name)
		fprintf(stderr, "is it lodge %s? ", name);
	fputs("try lodge --help)\n", stderr);
	return CLI_EXIT_USAGE;
}

/* lodge help keys add: as lodge keys add --help. */
static int help_of(int argc, char **argv)
{
	char flag[] = "--help", *words[] = { argv[0], flag, flag, NULL };
	int status;

	if (argc > 1)
		words[1] = argv[1];
	status = cmd_call(argv[0], argc > 1 ? 3 : 2, words);
	return status < 0 ? unknown(argv[0]) : status;
}

/* A closed standard descriptor would become one of ours, and get a command's bytes. */
static void open_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(CLI_EXIT_FAILED);
}

int main(int argc, char **argv)
{
	int status;

	open_standard_fds();
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		help(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") && argc > 2)
		return cli_option_flush(help_of(argc - 2, argv + 2));
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return cli_option_flush(help(stdout));
	if (!strcmp(argv[1], "--version")) {
		puts("lodge " LODGE_VERSION);
		return cli_option_flush(0);
	}
	status = cmd_call(argv[1], argc - 1, argv + 1);
	if (status < 0)
		return unknown(argv[1]);
	return status ? status : cli_option_flush(0); /* who failed has said so */
}
