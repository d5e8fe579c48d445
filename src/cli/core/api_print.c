/* SPDX-License-Identifier: Apache-2.0 */
/* How the commands that ask lodged speak. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/api_cmd.h"

static int say_as(const json_t *answer, size_t how, struct err *err)
{
	auto_free char *text = json_dumps(answer ? answer : json_null(), JSON_ENCODE_ANY | how);

	if (!text)
		return err_sys(err, ENOMEM, "answer");
	human_put_json(text, stdout);
	return 0;
}

int api_cmd_write_json(const json_t *answer, struct err *err)
{
	return say_as(answer, isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT, err);
}

int api_cmd_write_line(const json_t *answer, struct err *err)
{
	return say_as(answer, JSON_COMPACT, err);
}

int api_cmd_write(struct api_cmd *a, const json_t *answer, api_cmd_write_fn *people,
		  struct err *err)
{
	if (a->json)
		return api_cmd_write_json(answer, err);
	people(a, answer);
	return 0;
}

static char *make_clean(const char *fmt, va_list ap)
{
	auto_free char *raw = NULL;

	if (vasprintf(&raw, fmt, ap) < 0) {
		raw = NULL;
		return NULL;
	}
	return human_clean_dup(raw);
}

void api_cmd_print(const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = make_clean(fmt, ap);
	va_end(ap);
	puts(text ? text : "no memory");
}

void api_cmd_complain(struct api_cmd *a, const char *what, struct err *err)
{
	auto_free char *clean = human_clean_dup(what), *why = NULL;

	api_cmd_name_option(a, err);
	why = human_clean_dup(err->msg);
	a->told = true;
	fprintf(stderr, "lodge: %s: %s\n", clean ? clean : "", why ? why : "");
}

static void remark(const char *fmt, va_list ap)
{
	auto_free char *text = make_clean(fmt, ap);

	fflush(stdout);
	fprintf(stderr, "%s\n", text ? text : "no memory");
}

void api_cmd_remark(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	remark(fmt, ap);
	va_end(ap);
}

void api_cmd_hint(const char *fmt, ...)
{
	va_list ap;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(ap, fmt);
	remark(fmt, ap);
	va_end(ap);
}

bool api_cmd_sure(const struct api_cmd *a, const char *fmt, ...)
{
	auto_free char *text = NULL;
	char answer[16];
	va_list ap;

	if (a->yes || !isatty(STDIN_FILENO))
		return true;
	va_start(ap, fmt);
	text = make_clean(fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s [y/N] ", text ? text : "Go on?");
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	answer[strcspn(answer, "\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

json_t *api_cmd_string(const char *text)
{
	json_t *j = json_string(text);
	auto_free char *clean = j ? NULL : human_clean_dup(text);

	return j || !clean ? j : json_string(clean);
}

/* ---- members --------------------------------------------------------------------------------- */

static const json_t *member(const json_t *j, const char *path)
{
	char name[64];
	size_t n;

	while (j && *path) {
		n = strcspn(path, ".");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		j = json_object_get(j, name);
		path += n + (path[n] == '.');
	}
	return j;
}

const char *api_cmd_text(const json_t *j, const char *path)
{
	const char *text = json_string_value(member(j, path));

	return text ? text : "";
}

int64_t api_cmd_number(const json_t *j, const char *path)
{
	const json_t *v = member(j, path);

	return json_is_integer(v) ? (int64_t)json_integer_value(v) : -1;
}

bool api_cmd_is(const json_t *j, const char *path, const char *text)
{
	return strcmp(api_cmd_text(j, path), text) == 0;
}

const char *api_cmd_called(const json_t *session)
{
	const char *key = api_cmd_text(session, "key");

	return *key ? key : api_cmd_text(session, "id");
}
