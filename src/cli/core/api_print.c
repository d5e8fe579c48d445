/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/api_print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/api_cmd.h"

/* ---- answers --------------------------------------------------------------------------------- */

static int write_as(const json_t *answer, size_t flags, struct err *err)
{
	auto_free char *text = json_dumps(answer ? answer : json_null(), JSON_ENCODE_ANY | flags);

	if (!text)
		return err_sys(err, ENOMEM, "answer");
	human_put_json(text, stdout);
	return 0;
}

int api_cmd_write_json(const json_t *answer, struct err *err)
{
	return write_as(answer, isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT, err);
}

int api_cmd_write_line(const json_t *answer, struct err *err)
{
	return write_as(answer, JSON_COMPACT, err);
}

int api_cmd_write(struct api_cmd *a, const json_t *answer, command_print_fn *print, struct err *err)
{
	if (a->json)
		return api_cmd_write_json(answer, err);
	print(a, answer);
	return 0;
}

static void print_rows(const struct api_cmd *a, const json_t *rows)
{
	const struct command *cmd = a->cmd;
	json_t *row;
	size_t i;

	if (a->quiet) {
		json_array_foreach (rows, i, row) {
			api_cmd_print("%s", member_text(row, cmd->plain));
		}
		return;
	}
	field_print_table(cmd->fields, rows);
	if (cmd->empty && !json_array_size(rows))
		api_cmd_hint("%s", cmd->empty);
}

void api_cmd_print_answer(struct api_cmd *a, const json_t *answer)
{
	const struct command *cmd = a->cmd;
	auto_free char *done = NULL;

	if (cmd->print) {
		cmd->print(a, answer);
	} else if (cmd->rows) {
		print_rows(a, json_object_get(answer, cmd->rows));
	} else if (cmd->record) {
		field_print_record(cmd->fields, member_get(answer, cmd->record));
	} else if (cmd->plain) {
		api_cmd_print("%s", member_text(answer, cmd->plain));
	} else if (cmd->done) {
		done = api_cmd_expand(a, cmd->done);
		api_cmd_print("%s", done ? done : "");
	}
}

/* ---- texts ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 0))) static char *make_clean(const char *fmt, va_list ap)
{
	auto_free char *raw = NULL;

	if (vasprintf(&raw, fmt, ap) < 0) {
		raw = NULL;
		return NULL;
	}
	return human_clean_dup(raw);
}

void api_cmd_print_to(FILE *to, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = make_clean(fmt, ap);
	va_end(ap);
	if (to == stderr)
		fflush(stdout);
	fprintf(to, "%s\n", text ? text : "out of memory");
}

static bool read_yes(void)
{
	char answer[16];

	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	answer[strcspn(answer, "\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int api_cmd_confirm(struct api_cmd *a, const char *cancelled, struct err *err, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	if (a->yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return api_cmd_misuse(a, err,
				      "%s: standard input is not a terminal to ask on; pass --yes",
				      a->cmd->name);
	va_start(ap, fmt);
	text = make_clean(fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s [y/N] ", text ? text : "Continue?");
	fflush(stderr);
	return read_yes() ? 0 : err_set(err, ERR_CONFLICT, "cancelled: %s", cancelled);
}

char *api_cmd_expand(const struct api_cmd *a, const char *text)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	for (; *text; text++) {
		if (*text != '{') {
			putc(*text, f);
			continue;
		}
		if (text[1] == 'n')
			fprintf(f, "%d", a->argc);
		else
			fputs(a->argv[text[1] - '0'], f);
		text += 2;
	}
	return fclose(f) == 0 ? out : NULL;
}

json_t *api_cmd_string(const char *text)
{
	json_t *j = json_string(text);
	auto_free char *clean = j ? NULL : human_clean_dup(text);

	return j || !clean ? j : json_string(clean);
}
