/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/template_json.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"

DEFINE_AUTO(json_t *, json_decref);

static const struct {
	const char *name;
	unsigned bit;
} demands[] = {
	{ "cgroup", KEEPER_DEMAND_CGROUP },
	{ "disk", KEEPER_DEMAND_DISK },
	{ "inodes", KEEPER_DEMAND_INODES },
};

static int check_type(bool holds, const char *key, const char *what, struct err *err)
{
	return holds ? 0 : err_set(err, ERR_INVALID, "\"%s\" must be %s", key, what);
}

static int take_string(const char *key, const json_t *v, char **ret, struct err *err)
{
	if (check_type(json_is_string(v), key, "a string", err) < 0)
		return -1;
	free(*ret);
	*ret = strdup(json_string_value(v));
	return *ret ? 0 : err_sys(err, ENOMEM, "%s", key);
}

static int take_env(const json_t *v, struct template *t, struct err *err)
{
	size_t i;
	json_t *item;

	if (check_type(json_is_array(v), "env", "an array of \"NAME=VALUE\"", err) < 0)
		return -1;
	json_array_foreach (v, i, item) {
		if (check_type(json_is_string(item), "env", "an array of \"NAME=VALUE\"", err) <
			    0 ||
		    template_set_env(t, json_string_value(item), err) < 0)
			return -1;
	}
	return 0;
}

/* Older versions stored larger rings than there are now; what was stored stays usable. */
static uint64_t bound_stored(const char *key, uint64_t value)
{
	return !strcmp(key, "output_bytes") && value > LIMITS_OUTPUT_MAX ? LIMITS_OUTPUT_MAX
									 : value;
}

static int take_limits(json_t *v, struct template *t, struct err *err)
{
	const char *key;
	json_t *item;

	if (check_type(json_is_object(v), "limits", "an object", err) < 0)
		return -1;
	json_object_foreach (v, key, item) {
		if (check_type(json_is_integer(item) && json_integer_value(item) >= 0, key,
			       "a whole number", err) < 0 ||
		    template_set_limit(
			    t, key, bound_stored(key, (uint64_t)json_integer_value(item)), err) < 0)
			return -1;
	}
	return 0;
}

static int take_class(const json_t *v, struct template *t, struct err *err)
{
	const char *s = json_is_string(v) ? json_string_value(v) : "";

	if (check_type(!strcmp(s, "user") || !strcmp(s, "root"), "class", "\"user\" or \"root\"",
		       err) < 0)
		return -1;
	t->class = !strcmp(s, "root") ? KEEPER_CLASS_ROOT : KEEPER_CLASS_USER;
	return 0;
}

static int take_demand(const json_t *v, struct template *t, struct err *err)
{
	size_t i;
	json_t *item;

	if (check_type(json_is_array(v), "demand", "an array", err) < 0)
		return -1;
	json_array_foreach (v, i, item) {
		const char *s = json_is_string(item) ? json_string_value(item) : "";
		unsigned bit = 0;

		for (size_t d = 0; d < ARRAY_LEN(demands); d++)
			if (!strcmp(s, demands[d].name))
				bit = demands[d].bit;
		if (check_type(bit != 0, "demand", "made of \"cgroup\", \"disk\" and \"inodes\"",
			       err) < 0)
			return -1;
		t->demand |= bit;
	}
	return 0;
}

static int take_number(const char *key, const json_t *v, int64_t *ret, struct err *err)
{
	if (check_type(json_is_integer(v) && json_integer_value(v) >= 0, key, "a whole number",
		       err) < 0)
		return -1;
	*ret = json_integer_value(v);
	return 0;
}

static int take_made_key(const char *key, const json_t *v, struct template *t, struct err *err)
{
	int64_t bytes = 0;

	if (!strcmp(key, "from"))
		return take_string(key, v, &t->made.from, err);
	if (!strcmp(key, "snapshot"))
		return take_string(key, v, &t->made.snapshot, err);
	if (!strcmp(key, "at"))
		return take_number(key, v, &t->made.at, err);
	if (strcmp(key, "bytes") != 0)
		return err_set(err, ERR_INVALID, "unknown key \"made.%.40s\"", key);
	if (take_number(key, v, &bytes, err) < 0)
		return -1;
	t->made.bytes = (uint64_t)bytes;
	return 0;
}

static int take_made(json_t *v, struct template *t, struct err *err)
{
	const char *key;
	json_t *item;

	if (check_type(json_is_object(v), "made", "an object", err) < 0)
		return -1;
	json_object_foreach (v, key, item) {
		if (take_made_key(key, item, t, err) < 0)
			return -1;
	}
	return 0;
}

static int take_key(const char *key, json_t *v, struct template *t, struct err *err)
{
	if (!strcmp(key, "user"))
		return take_string(key, v, &t->user, err);
	if (!strcmp(key, "workdir"))
		return take_string(key, v, &t->workdir, err);
	if (!strcmp(key, "env"))
		return take_env(v, t, err);
	if (!strcmp(key, "limits"))
		return take_limits(v, t, err);
	if (!strcmp(key, "class"))
		return take_class(v, t, err);
	if (!strcmp(key, "demand"))
		return take_demand(v, t, err);
	if (!strcmp(key, "policy"))
		return take_string(key, v, &t->policy, err);
	if (!strcmp(key, "layer"))
		return take_string(key, v, &t->layer, err);
	if (!strcmp(key, "made"))
		return take_made(v, t, err);
	return err_set(err, ERR_INVALID, "unknown key \"%.40s\"", key);
}

int template_parse(const char *where, const char *text, size_t len, struct template *ret,
		   struct err *err)
{
	json_error_t why;
	auto_call(json_decref) json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	const char *key;
	json_t *v;

	template_init(ret);
	if (!root)
		return err_set(err, ERR_INVALID, "%s:%d: %s", where, why.line, why.text);
	if (!json_is_object(root))
		return err_set(err, ERR_INVALID, "%s: not an object", where);
	json_object_foreach (root, key, v) {
		if (take_key(key, v, ret, err) < 0)
			return err_ctx(err, "%s", where);
	}
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_limits(const struct template *t, json_t *root)
{
	json_t *o = json_object();
	int bad = 0;

	for (unsigned i = 0; template_limit_name(i); i++)
		if (t->limits_set & 1u << i)
			bad |= json_object_set_new(
				o, template_limit_name(i),
				json_integer((json_int_t)template_limit_value(t, i)));
	return bad | json_object_set_new(root, "limits", o);
}

static int put_lists(const struct template *t, json_t *root)
{
	json_t *env = json_array(), *demand = json_array();
	int bad = 0;

	for (size_t i = 0; i < t->nenv; i++)
		bad |= json_array_append_new(env, json_string(t->env[i]));
	for (size_t d = 0; d < ARRAY_LEN(demands); d++)
		if (t->demand & demands[d].bit)
			bad |= json_array_append_new(demand, json_string(demands[d].name));
	bad |= json_object_set_new(root, "env", env);
	return bad | json_object_set_new(root, "demand", demand);
}

static int put_text(json_t *o, const char *key, const char *text)
{
	return text ? json_object_set_new(o, key, json_string(text)) : 0;
}

static int put_made(const struct template *t, json_t *root)
{
	json_t *o = json_object();
	int bad = json_object_set_new(o, "at", json_integer(t->made.at)) |
		  json_object_set_new(o, "bytes", json_integer((json_int_t)t->made.bytes)) |
		  put_text(o, "from", t->made.from) | put_text(o, "snapshot", t->made.snapshot);

	return bad | json_object_set_new(root, "made", o);
}

int template_print(const struct template *t, char **ret, struct err *err)
{
	auto_call(json_decref) json_t *root = json_object();
	int bad = root ? 0 : -1;

	bad |= put_text(root, "user", t->user) | put_text(root, "workdir", t->workdir) |
	       put_text(root, "policy", t->policy) | put_text(root, "layer", t->layer);
	if (t->made.at)
		bad |= put_made(t, root);
	bad |= json_object_set_new(root, "class",
				   json_string(t->class == KEEPER_CLASS_ROOT ? "root" : "user"));
	bad |= put_limits(t, root) | put_lists(t, root);
	*ret = bad ? NULL : json_dumps(root, JSON_INDENT(2));
	if (!*ret) /* or out of memory */
		return err_set(err, ERR_INVALID, "user, workdir and environment must be UTF-8");
	return 0;
}

static int write_file(const char *path, const char *text, struct err *err)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	if (dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0)
		return err_sys(err, errno, "%s", path);
	return 0;
}

/* Syncs each directory from that of the file up to the home. */
static int sync_above(char *path, size_t home, struct err *err)
{
	while (strlen(path) > home) {
		int r;

		*strrchr(path, '/') = '\0';
		r = file_sync_dir(*path ? path : "/");
		if (r < 0)
			return err_sys(err, -r, "%s", path);
	}
	return 0;
}

int template_save(const char *home, const char *name, const struct template *t, struct err *err)
{
	char path[4096], temp[4100];
	auto_free char *text = NULL;

	if (template_print(t, &text, err) < 0)
		return err_ctx(err, "template %s", name);
	if (!template_name_is_valid(name))
		return err_set(err, ERR_INVALID, "template \"%.64s\": invalid name", name);
	if (strlen(text) + 1 >= TEMPLATE_TEXT_MAX) { /* template_load() could not read it */
		err_set(err, ERR_LIMIT, "template %s: its environment is too large", name);
		err->sys = EMSGSIZE;
		return -1;
	}
	if (template_make_dir(home, name, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/templates/%s/template.json", home, name);
	snprintf(temp, sizeof(temp), "%s.new", path);
	if (write_file(temp, text, err) < 0)
		return -1;
	if (rename(temp, path) < 0) {
		int e = errno;

		unlink(temp);
		return err_sys(err, e, "%s", path);
	}
	return sync_above(path, strlen(home), err);
}

/* ---- limits that are not enforced ------------------------------------------------------------ */

void template_put_problem(struct json_out *j, const char *shown, const char *problem)
{
	if (!problem)
		return;
	json_out_object(j, NULL);
	json_out_str(j, "limit", shown);
	json_out_bool(j, "enforced", false);
	json_out_str(j, "reason", problem);
	json_out_end(j);
}

static const char *shown_name(const char *limit)
{
	return strcmp(limit, "cpu_milli") == 0 ? "cpus" : limit;
}

void template_put_not_enforced(struct json_out *j, const char *key, const struct enforcement *f,
			       enum keeper_store store, const struct template *t)
{
	if (!f->known) {
		json_out_null(j, key);
		return;
	}
	json_out_array(j, key);
	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *name = template_limit_name(i);

		/* 0 CPUs: no limit */
		if (!t || (t->limits_set & 1u << i && template_limit_value(t, i)))
			template_put_problem(j, shown_name(name),
					     enforcement_problem(f, store, name));
	}
	json_out_end(j);
}
