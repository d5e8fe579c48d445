/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/human.h"

enum { HELP_COLUMN = 26, QUOTED = 40 };

static const struct cli_option *find_long(const struct cli_option *opts, const char *name,
					  size_t len)
{
	for (; opts->name; opts++)
		if (strlen(opts->name) == len && !strncmp(opts->name, name, len))
			return opts;
	return NULL;
}

static const struct cli_option *find_short(const struct cli_option *opts, char letter)
{
	for (; opts->name; opts++)
		if (opts->letter == letter)
			return opts;
	return NULL;
}

struct parse {
	const struct cli_option_command *cmd;
	int argc, at;
	char **argv;
	void *ctx;
	struct err *err;
};

static int set(struct parse *p, const struct cli_option *o, const char *shown, const char *value)
{
	if (o->arg && !value) {
		if (p->at + 1 >= p->argc)
			return err_set(p->err, ERR_INVALID, "%s: needs %s", shown, o->arg);
		value = p->argv[++p->at];
	}
	return o->set(p->ctx, shown, value, p->err);
}

static int parse_long(struct parse *p, const char *word)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);
	const struct cli_option *o = find_long(p->cmd->opts, word, len);
	char shown[64];

	if (!o)
		return err_set(p->err, ERR_INVALID, "unknown option --%.*s (try %s --help)",
			       (int)(len < QUOTED ? len : QUOTED), word, p->cmd->name);
	snprintf(shown, sizeof(shown), "--%s", o->name);
	if (eq && !o->arg)
		return err_set(p->err, ERR_INVALID, "%s: takes no value", shown);
	return set(p, o, shown, eq ? eq + 1 : NULL);
}

static int parse_short(struct parse *p, const char *letters)
{
	for (; *letters; letters++) {
		const struct cli_option *o = find_short(p->cmd->opts, *letters);
		char shown[] = { '-', *letters, '\0' };

		if (!o)
			return err_set(p->err, ERR_INVALID, "unknown option %s (try %s --help)",
				       *letters > ' ' && *letters < 0x7f ? shown : "-?",
				       p->cmd->name);
		if (o->arg)
			return set(p, o, shown, letters[1] ? letters + 1 : NULL);
		if (set(p, o, shown, NULL) < 0)
			return -1;
	}
	return 0;
}

static int parse_word(struct parse *p, bool *help)
{
	const char *word = p->argv[p->at];

	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		*help = true;
		return 0;
	}
	return word[1] == '-' ? parse_long(p, word + 2) : parse_short(p, word + 1);
}

int cli_option_parse(const struct cli_option_command *cmd, int argc, char **argv, void *ctx,
		     int *first, struct err *err)
{
	struct parse p = {
		.cmd = cmd, .argc = argc, .at = 1, .argv = argv, .ctx = ctx, .err = err
	};
	int noperands = 0;
	bool help = false;

	/* Operands gather at the front; the two parts change places at the end. */
	for (; p.at < argc; p.at++) {
		char *word = argv[p.at];

		if (!strcmp(word, "--") || (cmd->stops_at_operand && (word[0] != '-' || !word[1])))
			break;
		if (word[0] != '-' || !word[1]) {
			argv[1 + noperands++] = word;
			continue;
		}
		if (parse_word(&p, &help) < 0)
			return -1;
		if (help) {
			cli_option_help(cmd);
			return 1;
		}
	}
	if (p.at < argc && !strcmp(argv[p.at], "--"))
		p.at++;
	*first = p.at - noperands;
	memmove(argv + *first, argv + 1, sizeof(*argv) * (size_t)noperands);
	return 0;
}

static void help_line(const struct cli_option *o)
{
	char left[64];
	int n;

	if (o->letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s%s%s", o->letter, o->name,
			     o->arg ? " " : "", o->arg ? o->arg : "");
	else
		n = snprintf(left, sizeof(left), "      --%s%s%s", o->name, o->arg ? " " : "",
			     o->arg ? o->arg : "");
	if (n < HELP_COLUMN + 2)
		printf("%-*s  %s\n", HELP_COLUMN, left, o->help);
	else
		printf("%s\n%*s  %s\n", left, HELP_COLUMN, "", o->help);
}

static cli_option_help_fn *help_to;
static void *help_arg;

void cli_option_help_to(cli_option_help_fn *fn, void *arg)
{
	help_to = fn;
	help_arg = arg;
}

void cli_option_help(const struct cli_option_command *cmd)
{
	if (help_to) {
		help_to(help_arg, cmd);
		return;
	}
	printf("usage: %s %s\n%s\n\n", cmd->name, cmd->usage, cmd->summary);
	for (const struct cli_option *o = cmd->opts; o->name; o++)
		help_line(o);
	printf("  -h, --%-*s  %s\n", HELP_COLUMN - 8, "help", "show this");
	if (cmd->more)
		printf("\n%s", cmd->more);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The service speaks of headers, of which nobody writes one here. */
static bool advise_key(const struct err *err, const char *clean)
{
	static const char needed[] = "a key is needed";
	bool none = strncmp(err->msg, needed, sizeof(needed) - 1) == 0;

	if (err->sys != EKEYREJECTED)
		return false;
	fprintf(stderr, "lodge: %s (give one by `lodge login`, --key-file or LODGE_API_KEY)\n",
		none ? needed : clean);
	return true;
}

int cli_option_fail(int status, const struct err *err)
{
	char clean[2 * sizeof(err->msg)]; /* it may have words of a guest in it */

	human_clean(err->msg, clean, sizeof(clean));
	if (!advise_key(err, clean))
		fprintf(stderr, "lodge: %s\n", clean);
	return status;
}

int cli_option_flush(int status)
{
	struct err err;
	int e = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;

	if (!e)
		return status;
	if (e == EPIPE)
		return CLI_EXIT_UNREAD;
	err_sys(&err, e, "standard output");
	return cli_option_fail(CLI_EXIT_FAILED, &err);
}
