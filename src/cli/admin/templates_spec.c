/* SPDX-License-Identifier: Apache-2.0 */
/* What options say of a template, as the service takes it. */
#include <string.h>

#include "base/array.h"
#include "cli/admin/templates_cmd.h"

/* Options by the members they set; of `limits` and `env` these are parts. */
static const struct {
	const char *option, *member;
	bool limit;
} members[] = {
	{ "memory", "memory_bytes", true },
	{ "cpus", "cpus", true },
	{ "pids", "pids", true },
	{ "disk", "disk_bytes", true },
	{ "inodes", "inodes", true },
	{ "file-size", "file_bytes", true },
	{ "open-files", "open_files", true },
	{ "output", "output_bytes", true },
	{ "workdir", "workdir", false },
	{ "user", "run_as", false },
	{ "root", "class", false },
	{ "policy", "policy", false },
};

bool templates_is_set(const struct api_cmd *a)
{
	const struct template *t = &a->spec;

	return a->policy || a->unset || t->user || t->workdir || t->nenv || t->limits_set ||
	       t->class == KEEPER_CLASS_ROOT;
}

/* ---- taking away ----------------------------------------------------------------------------- */

static int unset_one(struct api_cmd *a, const char *name, json_t *body, json_t *env, json_t *limits,
		     struct err *err)
{
	if (strcmp(name, "env") == 0)
		return json_object_clear(env);
	if (strncmp(name, "env:", 4) == 0) {
		json_object_del(env, name + 4);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (strcmp(name, members[i].option) != 0)
			continue;
		if (!members[i].limit)
			return json_object_set_new(body, members[i].member, json_null());
		json_object_del(limits, members[i].member);
		return 0;
	}
	return api_cmd_wrong(
		a, err,
		"--unset: no \"%.40s\"; it takes names of options, as memory,workdir, and "
		"env:NAME",
		name);
}

static int unset(struct api_cmd *a, json_t *body, json_t *env, json_t *limits, struct err *err)
{
	auto_free char *list = strdup(a->unset ? a->unset : "");
	char *rest = list, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name && unset_one(a, name, body, env, limits, err) < 0)
			return -1;
	return 0;
}

/* ---- setting --------------------------------------------------------------------------------- */

static int put_env(const struct template *t, json_t *env)
{
	for (size_t i = 0; i < t->nenv; i++) {
		const char *eq = strchr(t->env[i], '=');
		auto_free char *name = strndup(t->env[i], (size_t)(eq - t->env[i]));

		if (!name || json_object_set_new(env, name, json_string(eq + 1)) < 0)
			return -1;
	}
	return 0;
}

static int put_limits(const struct template *t, json_t *limits)
{
	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *name = template_limit_name(i);
		uint64_t v = template_limit_value(t, i);
		bool milli = strcmp(name, "cpu_milli") == 0;

		if (!(t->limits_set & 1u << i))
			continue;
		if (json_object_set_new(limits, milli ? "cpus" : name,
					milli ? json_real((double)v / 1000)
					      : json_integer((json_int_t)v)) < 0)
			return -1;
	}
	return 0;
}

static int put_rest(const struct api_cmd *a, json_t *body)
{
	if (api_cmd_put(body, "run_as", a->spec.user) < 0 ||
	    api_cmd_put(body, "workdir", a->spec.workdir) < 0)
		return -1;
	if (a->spec.class == KEEPER_CLASS_ROOT && api_cmd_put(body, "class", "root") < 0)
		return -1;
	return api_cmd_put(body, "policy", a->policy);
}

static json_t *copy_of(const json_t *now, const char *name)
{
	json_t *there = json_object_get(now, name);

	return json_is_object(there) ? json_copy(there) : json_object();
}

/* Only what changed: what others change meanwhile of the rest stays. */
static int put_changed(json_t *body, const json_t *now, const char *name, json_t *value)
{
	auto_json json_t *before = copy_of(now, name);

	return json_equal(before, value) ? 0 : json_object_set(body, name, value);
}

int templates_spec(struct api_cmd *a, const json_t *now, json_t *body, struct err *err)
{
	auto_json json_t *env = copy_of(now, "env"), *limits = copy_of(now, "limits");

	if (unset(a, body, env, limits, err) < 0)
		return -1;
	if (put_env(&a->spec, env) < 0 || put_limits(&a->spec, limits) < 0 ||
	    put_rest(a, body) < 0 || put_changed(body, now, "env", env) < 0 ||
	    put_changed(body, now, "limits", limits) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	return 0;
}
