/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: include/lodge.h over src/sandbox. */
#include <errno.h>
#include <lodge.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sandbox/agent.h"
#include "sandbox/exec.h"
#include "sandbox/files.h"
#include "sandbox/home.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/template.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

#define PUBLIC __attribute__((visibility("default")))

_Static_assert((int)LODGE_INTERNAL == (int)ERR_INTERNAL && (int)LODGE_LIMIT == (int)ERR_LIMIT,
	       "the codes are the same");
_Static_assert((int)LODGE_HIT_FILE == (int)AGENT_HIT_FILE &&
		       (int)LODGE_HIT_MEMORY == (int)AGENT_HIT_MEMORY,
	       "the hits are the same");

struct lodge {
	struct keeper_client *keeper;
	char home[HOME_SIZE];
};

struct lodge_sandbox {
	struct sandbox *sb;
	struct template t;
};

static _Thread_local struct err last;

PUBLIC const char *lodge_last_error(void)
{
	return last.msg;
}

PUBLIC enum lodge_code lodge_last_code(void)
{
	return (enum lodge_code)last.code;
}

PUBLIC const char *lodge_version(void)
{
	return LODGE_VERSION;
}

PUBLIC int lodge_open(const char *home, struct lodge **ret)
{
	struct lodge *l = calloc(1, sizeof(*l));
	struct keeper_client_opts how = { .oneshot = true };

	if (!l)
		return err_sys(&last, ENOMEM, "lodge");
	how.home = l->home;
	if (home_find(home, l->home, &last) < 0 ||
	    keeper_client_spawn(&how, &l->keeper, &last) < 0) {
		free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

PUBLIC void lodge_close(struct lodge *l)
{
	if (!l)
		return;
	keeper_client_free(l->keeper);
	free(l);
}

static int limits_of(const struct lodge_spec *spec, struct template *t)
{
	const struct {
		const char *name;
		uint64_t value;
	} said[] = {
		{ "memory_bytes", spec->memory_bytes },
		{ "disk_bytes", spec->disk_bytes },
		{ "cpu_milli", spec->cpu_milli },
		{ "pids", spec->pids },
	};

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (said[i].value && template_set_limit(t, said[i].name, said[i].value, &last) < 0)
			return -1;
	return 0;
}

static int make(struct lodge *l, const struct lodge_spec *spec, struct lodge_sandbox *ret)
{
	struct sandbox_spec s = sandbox_spec_default();
	struct template over;
	int r;

	if (spec->template_name)
		s.template = spec->template_name;
	template_init(&over);
	over.class = spec->root ? KEEPER_CLASS_ROOT : KEEPER_CLASS_USER;
	r = limits_of(spec, &over);
	if (!r)
		r = template_load(l->home, s.template, &ret->t, &last);
	if (!r)
		r = template_merge(&ret->t, &over, &last);
	template_fini(&over);
	if (r || template_apply(&ret->t, &s, &last) < 0)
		return -1;
	s.store = spec->on_disk ? KEEPER_STORE_DISK : KEEPER_STORE_MEMORY;
	if (!spec->on_disk && s.limits.disk_bytes > s.limits.memory_bytes)
		s.limits.disk_bytes = s.limits.memory_bytes;
	return sandbox_new(l->keeper, &s, &ret->sb, &last);
}

PUBLIC int lodge_create(struct lodge *l, const struct lodge_spec *spec, struct lodge_sandbox **ret)
{
	static const struct lodge_spec defaults;
	struct lodge_sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return err_sys(&last, ENOMEM, "sandbox");
	template_init(&sb->t);
	if (make(l, spec ? spec : &defaults, sb) < 0) {
		template_fini(&sb->t);
		free(sb);
		return -1;
	}
	*ret = sb;
	return 0;
}

PUBLIC int lodge_destroy(struct lodge_sandbox *sb)
{
	int r;

	if (!sb)
		return 0;
	r = sandbox_destroy(sb->sb, &last);
	sandbox_free(sb->sb);
	template_fini(&sb->t);
	free(sb);
	return r;
}

PUBLIC const char *lodge_id(const struct lodge_sandbox *sb)
{
	return sandbox_id(sb->sb);
}

/* The template's variables first: those of the command win. */
static int merged_env(const struct lodge_sandbox *sb, const char *const *env, struct template *ret)
{
	template_init(ret);
	for (size_t i = 0; i < sb->t.nenv; i++)
		if (template_set_env(ret, sb->t.env[i], &last) < 0)
			return -1;
	for (; env && *env; env++)
		if (template_set_env(ret, *env, &last) < 0)
			return -1;
	return 0;
}

PUBLIC int lodge_exec(struct lodge_sandbox *sb, const struct lodge_command *cmd,
		      struct lodge_result *ret)
{
	struct exec_spec x = { .argv = cmd->argv,
			       .text = cmd->text,
			       .cwd = cmd->cwd ? cmd->cwd : sb->t.workdir,
			       .user = cmd->user ? cmd->user : sb->t.user,
			       .timeout_ms = cmd->timeout_ms,
			       .log_bytes = cmd->output_bytes };
	struct exec_output o = { 0 };
	struct template env;
	uint32_t uid, gid;
	int r = merged_env(sb, cmd->env, &env);

	if (!cmd->user && x.user && template_parse_user(x.user, &uid, &gid, &last) > 0)
		x.user = NULL; /* the default user of the sandbox already */
	x.env = (const char *const *)env.env;
	if (!r)
		r = exec_run(sb->sb, &x, cmd->input, cmd->input_len, &o, &last);
	template_fini(&env);
	if (r < 0)
		return -1;
	*ret = (struct lodge_result){ .code = o.result.code,
				      .signal = o.result.signal,
				      .hits = o.result.hits,
				      .out = o.out,
				      .err = o.err,
				      .out_len = o.out_len,
				      .err_len = o.err_len,
				      .out_total = o.out_total,
				      .err_total = o.err_total,
				      .duration_us = o.result.duration_us,
				      .cpu_us = o.result.cpu_us,
				      .max_rss_bytes = o.result.max_rss_bytes };
	return 0;
}

PUBLIC void lodge_result_fini(struct lodge_result *r)
{
	free(r->out);
	free(r->err);
	memset(r, 0, sizeof(*r));
}

PUBLIC int lodge_read_file(struct lodge_sandbox *sb, const char *path, size_t max, void **ret,
			   size_t *ret_len)
{
	return files_read(sb->sb, sb->t.user, path, max, ret, ret_len, &last);
}

PUBLIC int lodge_write_file(struct lodge_sandbox *sb, const char *path, const void *data,
			    size_t len, mode_t mode)
{
	return files_write(sb->sb, sb->t.user, path, data, len, AGENT_PARENTS, mode, &last);
}
