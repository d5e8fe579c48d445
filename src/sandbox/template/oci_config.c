/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/oci_config.h"

#include <string.h>

#include "base/array.h"

enum { USER_MAX = 255 };

static int apply_env(const json_t *config, struct template *t, struct err *err)
{
	const json_t *list = json_object_get(config, "Env"), *v;
	struct template merged;
	size_t i;
	int r = 0;

	/* Variables that are already set override those of the image. */
	template_init(&merged);
	json_array_foreach (list, i, v) {
		if (strchr(json_string_value(v), '=') && !r)
			r = template_set_env(&merged, json_string_value(v), err);
	}
	for (i = 0; !r && i < t->nenv; i++)
		r = template_set_env(&merged, t->env[i], err);
	for (i = 0; !r && i < merged.nenv; i++)
		r = template_set_env(t, merged.env[i], err);
	template_fini(&merged);
	return r;
}

static bool is_number(const char *s, size_t len)
{
	return len && strspn(s, "0123456789") >= len;
}

/* Also "00" and ":group". */
static bool is_root(const char *user, size_t len)
{
	return strspn(user, "0") >= len || (len == 4 && !memcmp(user, "root", 4));
}

/* "user" or "user:group", each a name or a number. */
static int check_user(const char *user, struct err *err)
{
	bool valid = strlen(user) <= USER_MAX && *user != '-';
	int colons = 0;

	for (const char *s = user; *s; s++) {
		colons += *s == ':';
		valid = valid && (unsigned char)*s > ' ' && *s != 0x7f && *s != '/';
	}
	if (valid && colons <= 1)
		return 0;
	return err_set(err, ERR_INVALID,
		       "image configuration: User \"%.60s\" is not a name or uid with an optional "
		       "group",
		       user);
}

/* A group counts only beside a uid and as a number. Group 0 is left out like user 0, because only
 * sandboxes of class "root" have it. */
static int copy_user(const char *user, size_t len, struct template *t, struct err *err)
{
	const char *group = user[len] ? user + len + 1 : "";
	size_t n = strlen(group);
	uint32_t uid, gid;
	bool numbers = is_number(user, len) && is_number(group, n) &&
		       (!is_root(group, n) || t->class == KEEPER_CLASS_ROOT);

	if (template_set_string(&t->user, user, err) < 0)
		return -1;
	if (!numbers)
		t->user[len] = '\0';
	if (template_parse_user(t->user, &uid, &gid, err) < 0)
		return err_ctx(err, "image configuration: User \"%.60s\"", user);
	return 0;
}

static int apply_user(const char *user, struct template *t, bool *ret_root, struct err *err)
{
	size_t len = strcspn(user, ":");

	if (!t->user && check_user(user, err) < 0)
		return -1;
	*ret_root = is_root(user, len);
	return t->user || *ret_root ? 0 : copy_user(user, len, t, err);
}

/* Tools write null for what is not set. */
static int check_types(const json_t *config, struct err *err)
{
	static const struct {
		const char *name, *what;
		json_type type;
	} fields[] = { { "User", "a string", JSON_STRING },
		       { "WorkingDir", "a string", JSON_STRING },
		       { "Env", "a list of strings", JSON_ARRAY } };
	const json_t *v;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		bool fits = true;

		v = json_object_get(config, fields[i].name);
		if (v && !json_is_null(v))
			fits = json_typeof(v) == fields[i].type;
		for (n = 0; n < json_array_size(v); n++)
			fits = fits && json_is_string(json_array_get(v, n));
		if (!fits)
			return err_set(err, ERR_INVALID, "image configuration: %s must be %s",
				       fields[i].name, fields[i].what);
	}
	return 0;
}

int oci_config_apply(const json_t *config, struct template *t, bool *ret_root, struct err *err)
{
	const char *s;

	if (check_types(config, err) < 0)
		return -1;
	s = json_string_value(json_object_get(config, "WorkingDir"));
	if (s && s[0] == '/' && !t->workdir && template_set_string(&t->workdir, s, err) < 0)
		return -1;
	s = json_string_value(json_object_get(config, "User"));
	if (apply_user(s ? s : "", t, ret_root, err) < 0)
		return -1;
	return apply_env(config, t, err) < 0 ? err_ctx(err, "image configuration: Env") : 0;
}
