/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a template, from options to the body of a request. */
#include <string.h>

#include "base/array.h"
#include "cli/admin/templates_cmd.h"

/* Options by the members they set; `limit` means a part of limits. */
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

const struct cli_option templates_spec_options[] = {
	CLI_INCLUDE(template_options, offsetof(struct template_opts, spec)),
	{ "policy", 0, "NAME", CLI_TEXT, offsetof(struct template_opts, policy),
	  "policy of sessions that choose none" },
	{ NULL },
};

void templates_init(struct api_cmd *a)
{
	template_init(&((struct template_opts *)a)->spec);
}

void templates_fini(struct api_cmd *a)
{
	template_fini(&((struct template_opts *)a)->spec);
}

bool templates_is_set(const struct template_opts *o)
{
	const struct template *t = &o->spec;

	return o->policy || o->unset || t->user || t->workdir || t->nenv || t->limits_set ||
	       t->class == KEEPER_CLASS_ROOT;
}

/* ---- resetting ------------------------------------------------------------------------------- */

static int unset_one(struct template_opts *o, const char *name, json_t *body, json_t *env,
		     json_t *limits, struct err *err)
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
	return api_cmd_misuse(&o->a, err,
			      "--unset: unknown option \"%.40s\"; use names as memory, workdir or "
			      "env:NAME",
			      name);
}

static int unset(struct template_opts *o, json_t *body, json_t *env, json_t *limits,
		 struct err *err)
{
	auto_free char *list = strdup(o->unset ? o->unset : "");
	char *rest = list, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name && unset_one(o, name, body, env, limits, err) < 0)
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

static int put_rest(struct template_opts *o, json_t *body, struct err *err)
{
	const char *class = o->spec.class == KEEPER_CLASS_ROOT ? "root" : NULL;

	if (api_cmd_put(&o->a, body, "run_as", "--user", o->spec.user, err) < 0 ||
	    api_cmd_put(&o->a, body, "workdir", "--workdir", o->spec.workdir, err) < 0 ||
	    api_cmd_put(&o->a, body, "class", "--root", class, err) < 0)
		return -1;
	return api_cmd_put(&o->a, body, "policy", "--policy", o->policy, err);
}

static json_t *copy_of(const json_t *now, const char *name)
{
	json_t *there = json_object_get(now, name);

	return json_is_object(there) ? json_copy(there) : json_object();
}

/* Sends only what changed, so that concurrent changes of the rest are kept. */
static int put_changed(json_t *body, const json_t *now, const char *name, json_t *value)
{
	auto_json json_t *before = copy_of(now, name);

	return json_equal(before, value) ? 0 : json_object_set(body, name, value);
}

int templates_spec(struct template_opts *o, const json_t *now, json_t *body, struct err *err)
{
	auto_json json_t *env = copy_of(now, "env"), *limits = copy_of(now, "limits");

	if (unset(o, body, env, limits, err) < 0 || put_rest(o, body, err) < 0)
		return -1;
	if (put_env(&o->spec, env) < 0 || put_limits(&o->spec, limits) < 0 ||
	    put_changed(body, now, "env", env) < 0 || put_changed(body, now, "limits", limits) < 0)
		return err_set(err, ERR_INVALID, "--env: value is not valid UTF-8");
	return 0;
}
