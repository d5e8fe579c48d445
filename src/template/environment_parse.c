/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the output of environment_script. Each part begins with a line of the marker and a name.
 * The template's own programs write it, so all sizes are bounded and the values are only shown. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json.h"
#include "template/environment_parse.h"

enum {
	DATA_MAX = 512 << 10,
	LINE_MAX_BYTES = 200, /* of a tool's version */
	VALUE_MAX = 4096,
	NAMES_MAX = 256,
};

/* /proc/$$/environ has the environment with which the shell was started. */
const char environment_script[] =
	"part() { printf '%s %s\\n' \"$m\" \"$1\"; }\n"
	"m=$1\n"
	"part pwd; pwd\n"
	"part kernel; uname -srm\n"
	"part os; cat /etc/os-release 2>/dev/null || cat /usr/lib/os-release 2>/dev/null\n"
	"for t in bash git node npm python3 python ruby perl php gcc make cmake curl rustc cargo; "
	"do\n"
	"	command -v $t >/dev/null 2>&1 || continue\n"
	"	part \"tool $t\"\n"
	"	$t --version </dev/null 2>/dev/null | while IFS= read -r line; do\n"
	"		[ -z \"$line\" ] || { printf '%s\\n' \"$line\"; break; }\n"
	"	done\n"
	"done\n"
	"part env; cat /proc/$$/environ\n"
	"printf '\\n'; part end\n";

bool environment_is_secret(const char *name)
{
	static const char *const words[] = { "KEY",  "SECRET", "TOKEN", "PASS",	       "CREDENTIAL",
					     "AUTH", "_PWD",   "DSN",	"DATABASE_URL" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

struct part {
	const char *name, *text; /* not terminated */
	size_t name_len, len;
};

/* From one marker to the next. False: no marker at *at. */
static bool next_part(const char **at, const char *end, const char *marker, struct part *ret)
{
	size_t skip = strlen(marker);
	const char *line, *text, *next;

	if ((size_t)(end - *at) <= skip || memcmp(*at, marker, skip) != 0 || (*at)[skip] != ' ')
		return false;
	line = *at + skip + 1;
	text = memchr(line, '\n', (size_t)(end - line));
	if (!text)
		return false;
	*ret = (struct part){ .name = line, .name_len = (size_t)(text - line), .text = text + 1 };
	text++;
	next = memmem(text, (size_t)(end - text), marker, skip);
	*at = next ? next : end;
	ret->len = (size_t)(*at - text);
	while (ret->len && text[ret->len - 1] == '\n')
		ret->len--;
	return true;
}

static bool has_name(const struct part *p, const char *name)
{
	return p->name_len == strlen(name) && memcmp(p->name, name, p->name_len) == 0;
}

/* Cuts at a NUL, because the store rejects it. */
static void put_text(struct json_out *j, const char *key, const char *text, size_t len, size_t max)
{
	json_out_bytes(j, key, text, strnlen(text, len < max ? len : max));
}

static void put_line(struct json_out *j, const char *key, const struct part *p)
{
	const char *end = memchr(p->text, '\n', p->len);
	size_t len = end ? (size_t)(end - p->text) : p->len;

	put_text(j, key, p->text, len, LINE_MAX_BYTES);
}

static void put_tool(struct json_out *j, const struct part *p)
{
	static const char prefix[] = "tool ";
	size_t skip = sizeof(prefix) - 1;
	char name[32];

	if (p->name_len <= skip || memcmp(p->name, prefix, skip) != 0 || !p->len)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(p->name_len - skip), p->name + skip);
	put_line(j, name, p);
}

/* ---- NAME=VALUE -------------------------------------------------------------------------- */

typedef void put_fn(struct json_out *j, char *name, const char *value, size_t len);

static void put_variable(struct json_out *j, char *name, const char *value, size_t len)
{
	if (environment_is_secret(name))
		json_out_str(j, name, "[redacted]");
	else
		put_text(j, name, value, len, VALUE_MAX);
}

/* Removes quotes as a shell does, but leaves escapes. */
static void put_os_field(struct json_out *j, char *name, const char *value, size_t len)
{
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		value++;
		len -= 2;
	}
	put_text(j, name, value, len, LINE_MAX_BYTES);
}

static void put_pairs(struct json_out *j, const char *key, const struct part *p, char separator,
		      put_fn *put)
{
	const char *at = p->text, *end = at + p->len;

	json_out_object(j, key);
	for (unsigned n = 0; at < end && n < NAMES_MAX; n++) {
		const char *stop = memchr(at, separator, (size_t)(end - at)), *eq;
		char name[128]; /* skip longer ones: a cut-off part could be "KEY" */

		stop = stop ? stop : end;
		eq = memchr(at, '=', (size_t)(stop - at));
		if (eq && eq > at && (size_t)(eq - at) < sizeof(name) && *at != '#') {
			snprintf(name, sizeof(name), "%.*s", (int)(eq - at), at);
			put(j, name, eq + 1, (size_t)(stop - eq - 1));
		}
		at = stop + 1;
	}
	json_out_end(j);
}

/* ---- document ---------------------------------------------------------------------------- */

/* Each tool is a part of its own. */
static void put_tools(struct json_out *j, const char *text, const char *end, const char *marker)
{
	struct part p;

	json_out_object(j, "tools");
	while (next_part(&text, end, marker, &p))
		put_tool(j, &p);
	json_out_end(j);
}

int environment_parse(const char *text, size_t len, const char *marker, char **ret, struct err *err)
{
	const char *at = text, *end = text + len;
	bool pwd = false, kernel = false, env = false, complete = false;
	struct json_out j;
	struct part p;
	char *data;

	json_out_init(&j, DATA_MAX);
	json_out_object(&j, NULL);
	while (next_part(&at, end, marker, &p)) {
		if (has_name(&p, "pwd") && !pwd && (pwd = p.len > 0))
			put_line(&j, "pwd", &p);
		else if (has_name(&p, "kernel") && !kernel && (kernel = p.len > 0))
			put_line(&j, "kernel", &p);
		else if (has_name(&p, "os"))
			put_pairs(&j, "os", &p, '\n', put_os_field);
		else if (has_name(&p, "env") && !env && (env = true))
			put_pairs(&j, "env", &p, '\0', put_variable);
		complete = has_name(&p, "end") && at == end;
	}
	put_tools(&j, text, end, marker);
	json_out_end(&j);
	data = json_out_take(&j, NULL);
	if (!data)
		return err_sys(err, ENOMEM, "environment");
	if (!pwd || !kernel || !env || !complete) {
		free(data);
		return err_set(err, ERR_UNAVAILABLE,
			       "the captured environment is incomplete; try again");
	}
	*ret = data;
	return 0;
}
