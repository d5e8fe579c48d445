/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "cli/core/command.h"
#include "cli/core/human.h"
#include "cli/core/option_hints.h"
#include "client/client.h"

DEFINE_AUTO(json_t *, json_decref);

enum { LEFT = 64, LEFT_MAX = 30, QUOTED = 40 };

/* ---- tables ---------------------------------------------------------------------------------- */

int cli_option_each(const struct cli_option *table, void *opts, cli_option_visit_fn *fn, void *arg)
{
	int r = 0;

	for (const struct cli_option *o = table; r == 0 && o && o->name; o++) {
		void *at = opts ? (char *)opts + o->at : NULL;

		if (o->kind == CLI_GROUP)
			r = cli_option_each(o->group, at, fn, arg);
		else if (o->kind != CLI_HEADING)
			r = fn(o, at, arg);
	}
	return r;
}

const char *cli_option_text(const struct cli_option *o, const void *at)
{
	return o->kind >= CLI_TEXT && o->kind <= CLI_LIST ? *(const char *const *)at : NULL;
}

struct search {
	const char *name; /* or NULL: by its letter */
	size_t len;
	char letter;
	const struct cli_option *found;
	void *at;
};

static int match(const struct cli_option *o, void *at, void *arg)
{
	struct search *s = arg;

	if (s->name ? strlen(o->name) == s->len && !strncmp(o->name, s->name, s->len)
		    : o->letter == s->letter || o->old_letter == s->letter) {
		s->found = o;
		s->at = at;
	}
	return s->found != NULL;
}

/* ---- help ------------------------------------------------------------------------------------ */

static int format_left(const struct cli_option *o, char left[LEFT])
{
	char letter[] = { '-', o->letter, ',', ' ', '\0' };

	return snprintf(left, LEFT, "  %s--%s%s%s", o->letter ? letter : "    ", o->name,
			o->arg ? " " : "", o->arg ? o->arg : "");
}

/* Options that every command has are listed by `lodge --help` only. */
static int measure(const struct cli_option *o, void *at, void *arg)
{
	char left[LEFT];
	int n = format_left(o, left), *width = arg;

	(void)at;
	if (!o->shared && !o->old && n > *width && n <= LEFT_MAX)
		*width = n;
	return 0;
}

static void print_row(const struct cli_option *o, int width)
{
	char left[LEFT];

	if (format_left(o, left) <= width)
		printf("%-*s  %s\n", width, left, o->help);
	else
		printf("%s\n%*s  %s\n", left, width, "", o->help);
}

static void print_rows(const struct cli_option *table, int width)
{
	for (const struct cli_option *o = table; o->name; o++) {
		if (o->kind == CLI_HEADING)
			printf("%s%s\n", o == table ? "" : "\n", o->name);
		else if (o->kind == CLI_GROUP)
			print_rows(o->group, width);
		else if (o->shared || o->old)
			continue;
		else
			print_row(o, width);
	}
}

struct difference {
	const struct cli_option *table;
	cli_option_visit_fn *fn;
	void *arg;
};

static int visit_new(const struct cli_option *o, void *at, void *arg)
{
	struct search s = { .name = o->name, .len = strlen(o->name) };
	struct difference *d = arg;

	return cli_option_each(d->table, NULL, match, &s) ? 0 : d->fn(o, at, d->arg);
}

int cli_option_each_of_twin(const struct command *cmd, cli_option_visit_fn *fn, void *arg)
{
	struct difference d = { .table = cmd->options, .fn = fn, .arg = arg };

	return cmd->twin ? cli_option_each(cmd->twin->options, NULL, visit_new, &d) : 0;
}

static int print_of_twin(const struct cli_option *o, void *at, void *arg)
{
	(void)at;
	if (!o->shared && !o->old)
		print_row(o, *(int *)arg);
	return 0;
}

static void print_help(const struct command *cmd)
{
	int width = 0;

	printf("%c%s.\n\nUsage: lodge %s%s%s\n", toupper(cmd->summary[0]), cmd->summary + 1,
	       cmd->name, *cmd->usage ? " " : "", cmd->usage);
	if (cmd->about)
		printf("\n%s", cmd->about);
	cli_option_each(cmd->options, NULL, measure, &width);
	cli_option_each_of_twin(cmd, measure, &width);
	if (width) {
		puts(cmd->options->kind == CLI_HEADING ? "" : "\nOptions");
		print_rows(cmd->options, width);
	}
	if (cmd->twin) {
		puts("\nWith --local");
		cli_option_each_of_twin(cmd, print_of_twin, &width);
	}
	if (cmd->more)
		printf("\n%s", cmd->more);
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct parse {
	const struct command *cmd;
	int argc, at;
	char **argv;
	void *opts;
	struct err *err;
};

static int set(struct parse *p, const struct search *s, const char *shown, const char *value)
{
	const struct cli_option *o = s->found;

	if (o->arg && !value) {
		if (p->at + 1 >= p->argc)
			return err_set(p->err, ERR_INVALID, "%s: %s is missing", shown, o->arg);
		value = p->argv[++p->at];
	}
	if (o->kind == CLI_SET)
		return o->set(s->at, shown, value, p->err);
	if (o->kind == CLI_FLAG) {
		*(bool *)s->at = true; /* NOLINT(clang-analyzer-core.NullDereference): never NULL */
		return 0;
	}
	*(const char **)s->at = value; /* NOLINT(clang-analyzer-core.NullDereference): likewise */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every other kind has a value */
	if (*value || o->kind == CLI_ANY)
		return 0;
	return err_set(p->err, ERR_INVALID, "%s: %s must not be empty", shown, o->arg);
}

/* option: `len` bytes, with its dashes. */
static int fail_unknown(struct parse *p, const char *option, size_t len)
{
	const char *hint = option_hint(p->cmd->name, option, len);
	int shown = (int)(len < QUOTED ? len : QUOTED);

	return hint ? err_set(p->err, ERR_INVALID, "there is no option %.*s: %s", shown, option,
			      hint)
		    : err_set(p->err, ERR_INVALID, "unknown option %.*s (try lodge %s --help)",
			      shown, option, p->cmd->name);
}

static int parse_long(struct parse *p, const char *word)
{
	const char *eq = strchr(word, '=');
	struct search s = { .name = word, .len = eq ? (size_t)(eq - word) : strlen(word) };
	char shown[64];

	if (!cli_option_each(p->cmd->options, p->opts, match, &s))
		return fail_unknown(p, word - 2, s.len + 2);
	snprintf(shown, sizeof(shown), "--%s", s.found->name);
	if (eq && !s.found->arg)
		return err_set(p->err, ERR_INVALID, "%s: takes no value", shown);
	return set(p, &s, shown, eq ? eq + 1 : NULL);
}

static int parse_short(struct parse *p, const char *letters)
{
	for (; *letters; letters++) {
		struct search s = { .letter = *letters };
		char shown[] = { '-', *letters, '\0' };

		if (!cli_option_each(p->cmd->options, p->opts, match, &s))
			return fail_unknown(p, *letters > ' ' && *letters < 0x7f ? shown : "-?", 2);
		if (s.found->arg)
			return set(p, &s, shown, letters[1] ? letters + 1 : NULL);
		if (set(p, &s, shown, NULL) < 0)
			return -1;
	}
	return 0;
}

/* 1: --help. */
static int parse_word(struct parse *p)
{
	const char *word = p->argv[p->at];

	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(p->cmd);
		return 1;
	}
	return word[1] == '-' ? parse_long(p, word + 2) : parse_short(p, word + 1);
}

int cli_option_parse(const struct command *cmd, int argc, char **argv, void *opts, int *first,
		     struct err *err)
{
	struct parse p = {
		.cmd = cmd, .argc = argc, .at = 1, .argv = argv, .opts = opts, .err = err
	};
	int noperands = 0, r;

	/* Operands gather at the front; the two parts change places at the end. */
	for (; p.at < argc; p.at++) {
		char *word = argv[p.at];
		bool operand = word[0] != '-' || !word[1];

		if (!strcmp(word, "--") || (cmd->stops_at_operand && operand))
			break;
		if (operand)
			argv[1 + noperands++] = word;
		else if ((r = parse_word(&p)) != 0)
			return r;
	}
	if (p.at < argc && !strcmp(argv[p.at], "--"))
		p.at++;
	*first = p.at - noperands;
	memmove(argv + *first, argv + 1, sizeof(*argv) * (size_t)noperands);
	return 0;
}

/* ---- failures -------------------------------------------------------------------------------- */

static bool fails_as_json;

void cli_option_json(void)
{
	fails_as_json = true;
}

/* The message is clean: UTF-8 without control characters. */
static void print_json(const struct err *err, const char *text)
{
	auto_call(json_decref) json_t *j =
		json_pack("{s:{s:s, s:s}}", "error", "code", client_code(err), "message", text);
	auto_free char *line = j ? json_dumps(j, JSON_COMPACT) : NULL;

	if (line)
		human_put_json(line, stdout);
}

int cli_option_fail(int status, const struct err *err)
{
	char clean[2 * sizeof(err->msg)]; /* the message may quote a guest */
	const char *text = human_clean(err->msg, clean, sizeof(clean)), *advice = "";

	if (err->sys == EKEYREJECTED) {
		/* the service's sentence names HTTP headers, which a user of lodge does not write
		 */
		if (strncmp(text, "a key is needed", 15) == 0 ||
		    strncmp(text, "missing API key", 15) == 0)
			text = "missing API key";
		advice = " (use `lodge login`, --key-file or LODGE_API_KEY)";
	}
	if (fails_as_json)
		print_json(err, text);
	fflush(stdout);
	fprintf(stderr, "lodge: %s%s\n", text, advice);
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
	fails_as_json = false;
	return cli_option_fail(CLI_EXIT_FAILED, &err);
}
