/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/program_rules.h"

#include <errno.h>
#include <jansson.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test_hook.h"
#include "base/vec.h"
#include "shell/shell_tables.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* The list for the kernel separates names with colons. A name with a blank is most likely a command
 * with arguments, and would never match. */
static bool is_name(const char *s)
{
	size_t len = strlen(s);
	const char *slash = strchr(s, '/');

	if (!len || len > SHELL_NAME_MAX || strchr(s, ':'))
		return false;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	return !slash || (slash == s && len > 1 && s[len - 1] != '/');
}

static int fail_invalid_name(const char *field, const char *name, struct err *err)
{
	char shown[41];

	snprintf(shown, sizeof(shown), "%s", name);
	for (char *c = shown; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return err_set(err, ERR_INVALID, "%s: \"%s\" must be a program name or an absolute path",
		       field, shown);
}

int shell_names_add(struct shell_names *n, const char *field, const char *name, struct err *err)
{
	char **added;

	if (!is_name(name))
		return fail_invalid_name(field, name, err);
	if (n->count >= SHELL_NAMES_MAX)
		return err_set(err, ERR_INVALID, "%s: more than %d names", field, SHELL_NAMES_MAX);
	added = vec_push(&n->items, &n->count, SHELL_NAMES_MAX);
	if (!added || !(*added = strdup(name))) {
		n->count -= added != NULL;
		return err_sys(err, ENOMEM, "%s", field);
	}
	n->said = true;
	return 0;
}

/* "ls" of "/bin/ls". */
static const char *base_name(const char *name)
{
	return name + path_prefix(name, strlen(name));
}

bool shell_names_have(const struct shell_names *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(base_name(n->items[i]), base_name(name)) == 0)
			return true;
	return false;
}

static void names_fini(struct shell_names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i]);
	free(n->items);
}

void shell_rules_fini(struct shell_rules *r)
{
	names_fini(&r->allow);
	names_fini(&r->deny);
	free(r->reason);
	*r = (struct shell_rules){ 0 };
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int parse_names(const char *field, const json_t *v, struct shell_names *n, struct err *err)
{
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_array(v))
		return err_set(err, ERR_INVALID, "%s: must be an array", field);
	n->said = true;
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *one = json_array_get(v, i);
		const char *name = json_string_value(one);

		if (!name || strlen(name) != json_string_length(one))
			return err_set(err, ERR_INVALID, "%s: must contain only names", field);
		if (shell_names_add(n, field, name, err) < 0)
			return -1;
	}
	return 0;
}

static int parse_reason(const json_t *v, struct shell_rules *r, struct err *err)
{
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v) || json_string_length(v) > SHELL_REASON_MAX ||
	    strlen(json_string_value(v)) != json_string_length(v))
		return err_set(err, ERR_INVALID, "reason: must be a string of at most %d bytes",
			       SHELL_REASON_MAX);
	r->reason = strdup(json_string_value(v));
	return r->reason ? 0 : err_sys(err, ENOMEM, "reason");
}

static int parse_enforce(const json_t *v, struct shell_rules *r, struct err *err)
{
	const char *s = v ? json_string_value(v) : "try";

	if (json_is_null(v))
		s = "try";
	if (!s || (strcmp(s, "try") != 0 && strcmp(s, "require") != 0))
		return err_set(err, ERR_INVALID, "enforce: must be \"try\" or \"require\"");
	r->enforce = strcmp(s, "require") == 0 ? SHELL_REQUIRE : SHELL_TRY;
	return 0;
}

static int parse_rules(json_t *root, struct shell_rules *r, struct err *err)
{
	static const char *const known[] = { "allow", "deny", "reason", "enforce" };
	const char *key;
	json_t *v;

	if (!json_is_object(root))
		return err_set(err, ERR_INVALID, "must be an object");
	json_object_foreach (root, key, v) {
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			found |= strcmp(key, known[i]) == 0;
		if (!found)
			return err_set(err, ERR_INVALID, "%.60s: unknown field", key);
	}
	if (parse_names("allow", json_object_get(root, "allow"), &r->allow, err) < 0 ||
	    parse_names("deny", json_object_get(root, "deny"), &r->deny, err) < 0 ||
	    parse_reason(json_object_get(root, "reason"), r, err) < 0 ||
	    parse_enforce(json_object_get(root, "enforce"), r, err) < 0)
		return -1;
	if (r->enforce == SHELL_REQUIRE && !r->allow.said)
		return err_set(err, ERR_INVALID, "enforce: requires an allow list");
	return 0;
}

int shell_rules_parse(const char *json, size_t len, struct shell_rules *ret, struct err *err)
{
	struct shell_rules r = { 0 };
	json_error_t bad;
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &bad);
	int res;

	if (!root)
		return err_set(err, ERR_INVALID, "line %d: %.100s", bad.line, bad.text);
	res = parse_rules(root, &r, err);
	json_decref(root);
	if (res < 0)
		shell_rules_fini(&r);
	else
		*ret = r;
	return res;
}

static int put_names(json_t *to, const char *field, const struct shell_names *n)
{
	json_t *list = json_array();
	int r = 0;

	for (size_t i = 0; i < n->count; i++)
		r |= json_array_append_new(list, json_string(n->items[i]));
	if (!n->said) {
		json_decref(list);
		return 0;
	}
	return r | json_object_set_new(to, field, list);
}

char *shell_rules_print(const struct shell_rules *r)
{
	json_t *root = json_object();
	char *text = NULL;
	int bad = put_names(root, "allow", &r->allow) | put_names(root, "deny", &r->deny);

	if (r->reason)
		bad |= json_object_set_new(root, "reason", json_string(r->reason));
	if (r->enforce == SHELL_REQUIRE)
		bad |= json_object_set_new(root, "enforce", json_string("require"));
	if (!bad)
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* A denied name is denied in every directory: rm also denies /tmp/rm. */
static bool is_denied(const struct shell_rules *r, const char *name)
{
	const char *slash = strrchr(name, '/');

	return shell_names_have(&r->deny, name) || (slash && shell_names_have(&r->deny, slash + 1));
}

bool shell_allows(const struct shell_rules *r, const struct shell_word *w, const char **ret_why)
{
	bool listed = shell_names_have(&r->allow, w->name);

	if (w->kind == SHELL_FUNCTION)
		return *ret_why = "is a function defined in the text", true;
	if (is_denied(r, w->name))
		return *ret_why = "is denied", false;
	if (w->kind == SHELL_BUILTIN)
		return *ret_why = "is a shell builtin", true;
	if (listed)
		return *ret_why = "is on the allow list", true;
	if (w->kind == SHELL_UNKNOWN)
		return *ret_why = "is unknown until it runs", !r->allow.said;
	if (w->kind == SHELL_SETTING)
		return *ret_why = "can make a shell start anything", !r->allow.said;
	if (!r->allow.said)
		return *ret_why = "is not denied", true;
	return *ret_why = "is not on the allow list", false;
}

const struct shell_word *shell_refused(const struct shell_rules *r, const struct shell_words *w)
{
	const char *why;

	for (size_t i = 0; i < w->count; i++)
		if (!shell_allows(r, &w->items[i], &why))
			return &w->items[i];
	return NULL;
}

static void put_word(struct json_out *j, const struct shell_rules *r, const struct shell_word *w)
{
	static const char *const kinds[] = { "program", "builtin", "function", "unknown",
					     "setting" };
	const char *why;
	bool allowed = shell_allows(r, w, &why);

	json_out_object(j, NULL);
	json_out_str(j, "name", w->name);
	json_out_str(j, "kind", kinds[w->kind]);
	json_out_u64(j, "offset", w->offset);
	json_out_u64(j, "line", w->line);
	json_out_u64(j, "column", w->column);
	json_out_bool(j, "allowed", allowed);
	json_out_str(j, "why", why);
	json_out_end(j);
}

void shell_tell(const struct shell_rules *r, const struct shell_word *w, char ret[SHELL_TOLD_MAX])
{
	const char *why;

	(void)shell_allows(r, w, &why);
	snprintf(ret, SHELL_TOLD_MAX, "%s%s%s", why, r->reason ? ": " : "",
		 r->reason ? r->reason : "");
}

bool shell_can_enforce(void)
{
	return !hook_weak("landlock") &&
	       syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

void shell_put_verdict(struct json_out *j, const struct shell_rules *r, const struct shell_words *w)
{
	const struct shell_word *bad = shell_refused(r, w);
	char reason[SHELL_TOLD_MAX];

	json_out_bool(j, "allowed", !bad);
	json_out_bool(j, "enforced", r->allow.said && shell_can_enforce());
	json_out_array(j, "programs");
	for (size_t i = 0; i < w->count; i++)
		put_word(j, r, &w->items[i]);
	json_out_end(j);
	if (bad)
		shell_tell(r, bad, reason);
	json_out_str(j, "reason", bad ? reason : NULL);
}
