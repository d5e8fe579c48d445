/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/words.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

/* In the order of --help. */
/* clang-format off */
const struct command *const all_commands[] = {
	&cmd_create, &cmd_shell, &cmd_ls, &cmd_inspect, &cmd_cp, &cmd_stop, &cmd_start, &cmd_pause,
	&cmd_unpause, &cmd_extend, &cmd_set, &cmd_rm, &cmd_prune,
	&cmd_exec, &cmd_ps, &cmd_logs, &cmd_attach, &cmd_kill,
	&cmd_snapshot, &cmd_diff, &cmd_fork, &cmd_rollback, &cmd_export, &cmd_import,
	&cmd_user, &cmd_cleanup, &cmd_project, &cmd_team, &cmd_switch,
	&cmd_status, &cmd_top, &cmd_events, &cmd_template, &cmd_policy, &cmd_key, &cmd_bench,
	&cmd_login,
	&cmd_run, &cmd_doctor, &cmd_completion, NULL,
};
/* clang-format on */

/* Titles of --help, each above this command and those that follow it. */
static const struct {
	const struct command *first;
	const char *title;
} groups[] = {
	{ &cmd_create, "Sessions" },	{ &cmd_exec, "Commands" },
	{ &cmd_snapshot, "Snapshots" }, { &cmd_user, "Users and projects" },
	{ &cmd_status, "Service" },	{ &cmd_run, "This machine" },
};

static const struct command *find(const char *name)
{
	for (const struct command *const *c = all_commands; *c; c++)
		if (!strcmp(name, (*c)->name))
			return *c;
	return NULL;
}

static int help(FILE *to)
{
	fputs("Run untrusted code in sandboxes that keep their files.\n\n"
	      "Usage: lodge COMMAND [OPTION...] [ARGUMENT...]\n",
	      to);
	for (const struct command *const *c = all_commands; *c; c++) {
		for (size_t i = 0; i < ARRAY_LEN(groups); i++)
			if (groups[i].first == *c)
				fprintf(to, "\n%s\n", groups[i].title);
		fprintf(to, "  %-10s  %s\n", (*c)->name, (*c)->summary);
	}
	fputs("\nOptions for all commands\n"
	      "  --url URL        service to use (LODGE_URL)\n"
	      "  --key-file FILE  file with the API key (LODGE_API_KEY)\n"
	      "  -h, --help       show help for a command\n"
	      "  --version        print the version\n\n"
	      "Start here: lodge create demo && lodge shell demo\n"
	      "Manual: man lodge        API reference: /docs\n",
	      to);
	return 0;
}

/* ---- unknown commands ------------------------------------------------------------------------ */

enum { NAME_MAX_LENGTH = 16, TYPOS = 2 };

/* The edit distance: letters to add, remove or change. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LENGTH + 1], n = (unsigned)strlen(b);

	if (strlen(a) > NAME_MAX_LENGTH || n > NAME_MAX_LENGTH)
		return UINT_MAX;
	for (unsigned k = 0; k <= n; k++)
		row[k] = k;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned before = row[0]++; /* of the row above, one to the left */

		for (unsigned k = 1; k <= n; k++) {
			unsigned above = row[k];

			row[k] = MIN(MIN(above, row[k - 1]) + 1, before + (a[i - 1] != b[k - 1]));
			before = above;
		}
	}
	return row[n];
}

/* The most similar name; NULL: none is. A word with half of its letters wrong is another word. */
static const char *nearest(const char *word)
{
	unsigned best = TYPOS + 1;
	const char *name = NULL;

	for (const struct command *const *c = all_commands; *c; c++) {
		unsigned d = distance(word, (*c)->name);

		if (d < best && d <= strlen(word) / 2) {
			best = d;
			name = (*c)->name;
		}
	}
	return name;
}

static int fail_unknown(const char *word)
{
	const char *name = nearest(word), *hint = words_hint(word);

	if (hint) {
		fprintf(stderr, "lodge: there is no lodge %s: %s\n", word, hint);
		return CLI_EXIT_USAGE;
	}
	fprintf(stderr, "lodge: unknown %s \"%.40s\" (", word[0] == '-' ? "option" : "command",
		word);
	if (name)
		fprintf(stderr, "did you mean lodge %s? ", name);
	fputs("try lodge --help)\n", stderr);
	return CLI_EXIT_USAGE;
}

static int run_command(int argc, char **argv)
{
	char **words = words_translate(&argc, argv);
	const struct command *cmd = words ? find(words[0]) : NULL;

	if (!words)
		return CLI_EXIT_FAILED;
	return cmd ? command_main(cmd, argc, words) : fail_unknown(words[0]);
}

/* lodge help key create: as lodge key create --help. */
static int help_of(int argc, char **argv)
{
	char flag[] = "--help", *words[] = { argv[0], flag, flag, NULL };

	if (argc > 1)
		words[1] = argv[1];
	return run_command(argc > 1 ? 3 : 2, words);
}

/* A file that lodge opens must not become a standard descriptor and receive a command's output. */
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
	status = run_command(argc - 1, argv + 1);
	return status ? status : cli_option_flush(0); /* a failure is reported already */
}
