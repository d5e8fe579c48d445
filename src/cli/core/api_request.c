/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/api_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/core/api_cmd.h"
#include "cli/core/quantity.h"

/* ---- parts of requests ----------------------------------------------------------------------- */

int api_cmd_list(struct api_cmd *a, const char *path, const char *member, json_t **ret,
		 struct err *err)
{
	json_t *items = NULL;

	if (client_list(a->client, path, member, &items, err) < 0)
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only removals need no answer */
	*ret = json_pack("{s:o}", member, items);
	return *ret ? 0 : err_sys(err, ENOMEM, "%s", member);
}

int api_cmd_put(struct api_cmd *a, json_t *body, const char *name, const char *what,
		const char *value, struct err *err)
{
	if (!value || member_set(body, name, json_string(value)) == 0)
		return 0;
	return api_cmd_misuse(a, err, "%s: value is not valid UTF-8", what);
}

int api_cmd_check_key(struct api_cmd *a, const char *what, const char *key, struct err *err)
{
	char ref[TARGET_REF];

	if (!key || target_ref(key, ref, err) < 0 || strcmp(key, ref) != 0)
		return 0; /* the service checks everything else */
	return api_cmd_misuse(a, err, "%s: \"%.60s\" cannot be a key: lodge reads it as %s", what,
			      key, *key == 's' ? "an id" : "the key after the colon");
}

int api_cmd_count_of(struct api_cmd *a, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret, struct err *err)
{
	if (!value || units_parse_count(option, value, least, most, ret, err) == 0)
		return 0;
	a->misused = true;
	return -1;
}

int api_cmd_query(char *path, size_t size, const char *name, const char *value, struct err *err)
{
	char part[API_PATH];
	size_t has = strlen(path);
	int n;

	if (!value)
		return 0;
	if (client_path(part, sizeof(part), err, "?%s", value) < 0)
		return -1;
	n = snprintf(path + has, size - has, "%c%s=%s", strchr(path, '?') ? '&' : '?', name,
		     part + 1);
	if (n < 0 || (size_t)n >= size - has)
		return err_set(err, ERR_INVALID, "%s: value is too long", name);
	return 0;
}

int api_cmd_find_snapshot(struct api_cmd *a, const char *ref, const char *which, json_t **ret,
			  struct err *err)
{
	auto_json json_t *list = NULL;
	char path[API_PATH];
	json_t *s, *found = NULL;
	size_t i;

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/snapshots", ref) < 0 ||
	    client_list(a->client, path, "snapshots", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		if (which ? member_is(s, "id", which) || member_is(s, "name", which)
			  : !found || member_number(s, "created_at") >=
					      member_number(found, "created_at"))
			found = s;
	}
	if (!found && which)
		return err_set(err, ERR_NOT_FOUND,
			       "session has no snapshot \"%.64s\" (see lodge snapshot ls)", which);
	if (!found)
		return err_set(err, ERR_NOT_FOUND,
			       "session has no snapshots (take one: lodge snapshot)");
	*ret = json_incref(found);
	return 0;
}

int api_cmd_check_last(struct api_cmd *a, const char *option, struct err *err)
{
	auto_json json_t *answer = NULL;
	const char *last = a->argv[a->argc - 1];
	char ref[TARGET_REF];

	if (a->argc < 2 || target_is_id(last) || target_ref(last, ref, err) < 0 ||
	    api_cmd_call(a, "GET", NULL, &answer, err, "/v1/sessions/%s", ref) == 0 ||
	    err->code != ERR_NOT_FOUND)
		return 0; /* the request itself reports other errors */
	return api_cmd_misuse(a, err, "%s: no session \"%.100s\" (did you mean %s %.100s?)",
			      a->cmd->name, last, option, last);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static json_t *split(const char *list)
{
	json_t *names = json_array();

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n)
			json_array_append_new(names, json_stringn(list, n));
		list += n + (list[n] == ',');
	}
	return names;
}

/* The service checks bounds. */
static json_t *to_number(const struct cli_option *o, const char *shown, const char *text,
			 struct err *err)
{
	uint64_t n;
	int r = o->kind == CLI_MS      ? quantity_ms(shown, text, &n, err)
		: o->kind == CLI_BYTES ? quantity_bytes(shown, text, &n, err)
		: o->kind == CLI_MILLI ? units_parse_milli(shown, text, &n, err)
		: o->kind == CLI_COUNT ? units_parse_count(shown, text, 1, UINT32_MAX, &n, err)
				       : units_parse_count(shown, text, 0, INT64_MAX, &n, err);

	if (r < 0)
		return NULL;
	if (n > INT64_MAX) {
		err_set(err, ERR_INVALID, "%s: %.40s is too large", shown, text);
		return NULL;
	}
	return json_integer((json_int_t)n);
}

struct filling {
	struct api_cmd *a;
	json_t *body;
	char *path; /* or: the query of this one */
	struct err *err;
};

static int fill_member(struct filling *f, const struct cli_option *o, const char *text)
{
	char shown[64];
	json_t *value;

	snprintf(shown, sizeof(shown), "--%s", o->name);
	if (o->kind == CLI_TEXT || o->kind == CLI_ANY)
		return api_cmd_put(f->a, f->body, o->field, shown, text, f->err);
	value = o->kind == CLI_LIST ? split(text) : to_number(o, shown, text, f->err);
	if (value && member_set(f->body, o->field, value) == 0)
		return 0;
	f->a->misused = true;
	return -1;
}

/* A flag whose field begins with '!' makes it false. */
static int fill_option(const struct cli_option *o, void *at, void *arg)
{
	struct filling *f = arg;
	const char *text = cli_option_text(o, at);

	if (!o->field)
		return 0;
	if (o->kind == CLI_FLAG && *(bool *)at)
		return member_set(f->body, o->field + (*o->field == '!'),
				  json_boolean(*o->field != '!'));
	if (!text)
		return 0;
	return f->path ? api_cmd_query(f->path, API_PATH, o->field, text, f->err)
		       : fill_member(f, o, text);
}

int api_cmd_fill(struct api_cmd *a, json_t *body, struct err *err)
{
	struct filling f = { .a = a, .body = body, .err = err };

	return cli_option_each(a->cmd->options, a, fill_option, &f);
}

/* "limits.pids" is "limits: pids: " in an error. */
static int rename_field(const struct cli_option *o, void *at, void *arg)
{
	struct err *err = arg;
	const char *msg = err->msg;
	bool given = o->kind == CLI_FLAG ? *(bool *)at : cli_option_text(o, at) != NULL;
	char rest[sizeof(err->msg)];

	if (!given || !o->field)
		return 0;
	for (const char *p = o->field; *p; p++) {
		if (*p == '.' && strncmp(msg, ": ", 2) == 0)
			msg += 2;
		else if (*msg++ != *p)
			return 0;
	}
	if (strncmp(msg, ": ", 2) != 0)
		return 0;
	snprintf(rest, sizeof(rest), "%s", msg + 2);
	snprintf(err->msg, sizeof(err->msg), "--%s: %s", o->name, rest);
	return 1;
}

void api_cmd_name_option(struct api_cmd *a, struct err *err)
{
	(void)cli_option_each(a->cmd->options, a, rename_field, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool has_body(const struct command *cmd)
{
	return cmd->method[0] == 'P';
}

static int has_field(const struct cli_option *o, void *at, void *arg)
{
	(void)at;
	(void)arg;
	return o->field != NULL;
}

static int make_path(struct api_cmd *a, const char *first, char path[API_PATH], struct err *err)
{
	struct filling f = { .a = a, .path = path, .err = err };
	const struct command *cmd = a->cmd;

	if (client_path(path, API_PATH, err, cmd->path, first, a->argc > 1 ? a->argv[1] : "") < 0 ||
	    api_cmd_query(path, API_PATH, "limit", cmd->paged ? "1000" : NULL, err) < 0)
		return -1;
	return has_body(cmd) ? 0 : cli_option_each(cmd->options, a, fill_option, &f);
}

/* NULL where the request has none. */
static int make_body(struct api_cmd *a, json_t **ret, struct err *err)
{
	const struct command *cmd = a->cmd;
	auto_json json_t *body = NULL;

	if (!has_body(cmd) ||
	    !(cmd->operand || cmd->fill || cli_option_each(cmd->options, NULL, has_field, NULL)))
		return 0;
	body = json_object();
	if ((cmd->operand &&
	     api_cmd_put(a, body, cmd->operand, cmd->operand, a->argv[0], err) < 0) ||
	    api_cmd_fill(a, body, err) < 0 || (cmd->fill && cmd->fill(a, body, err) < 0))
		return -1;
	*ret = steal_ptr(&body);
	return 0;
}

static int send_one(struct api_cmd *a, const char *first, json_t **ret, struct err *err)
{
	const struct command *cmd = a->cmd;
	auto_json json_t *body = NULL;
	char path[API_PATH];
	int r;

	if (make_path(a, first, path, err) < 0 || make_body(a, &body, err) < 0)
		return -1;
	r = cmd->paged ? api_cmd_list(a, path, cmd->rows, ret, err)
		       : client_call(a->client, cmd->method, path, body, ret, err);
	return r < 0 && cmd->explain && !a->misused ? cmd->explain(a, err) : r;
}

static int remove_one(struct api_cmd *a, const char *which, struct err *err)
{
	return send_one(a, which, NULL, err);
}

static int confirm(struct api_cmd *a, struct err *err)
{
	const struct command *cmd = a->cmd;
	auto_free char *question = NULL;

	if (!cmd->confirm)
		return 0;
	question = api_cmd_expand(a, a->argc > 1 && cmd->confirm_many ? cmd->confirm_many
								      : cmd->confirm);
	return api_cmd_confirm(a, cmd->cancelled, err, "%s", question ? question : "Continue?");
}

int api_cmd_request(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (confirm(a, err) < 0)
		return -1;
	if (a->cmd->sessions)
		return api_cmd_each(a, send_one, api_cmd_print_answer, err);
	if (a->cmd->each)
		return api_cmd_remove_each(a, remove_one, err);
	if (send_one(a, a->argc ? a->argv[0] : "", &answer, err) < 0)
		return -1;
	if (a->json && !answer && a->argc)
		return api_cmd_write_removed(a, a->argv[a->argc - 1], err);
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}
