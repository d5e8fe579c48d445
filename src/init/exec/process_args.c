/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_args.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "init/core/guest_spawn.h"

enum { DEFAULT_VARS = 6 };

/* As many as a message can hold. Untouched pages cost nothing. */
static char *pointers[AGENT_MSG_MAX + 16];
static char default_vars[DEFAULT_VARS][320];

static void add_default_vars(struct process_args *c)
{
	const struct passwd_user *u = &c->user;
	const bool root = u->cred.uid == 0;
	const struct {
		const char *name, *value;
	} vars[DEFAULT_VARS] = {
		{ "HOME", u->home },
		{ "USER", u->name },
		{ "LOGNAME", u->name },
		{ "SHELL", u->shell },
		{ "PATH", root ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
			       : "/usr/local/bin:/usr/bin:/bin" },
		{ "TERM", c->m.flags & AGENT_PTY ? "xterm-256color" : "" },
	};
	char **end = c->envp;

	while (*end)
		end++;
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		if (!vars[i].value[0] || guest_spawn_env(c->envp, vars[i].name))
			continue;
		snprintf(default_vars[i], sizeof(default_vars[i]), "%s=%s", vars[i].name,
			 vars[i].value);
		*end++ = default_vars[i];
		*end = NULL;
	}
}

/* argv unchanged, or the shell that runs the text. */
static char **build_argv(struct process_args *c, char **to, const char **at)
{
	static char bash[] = "bash", dash_c[] = "-c", dash_l[] = "-l";

	c->argv = to;
	if (c->m.flags & AGENT_BASH) {
		*to++ = bash;
		if (c->m.flags & AGENT_LOGIN)
			*to++ = dash_l;
		*to++ = dash_c;
	}
	for (uint32_t i = 0; i < c->m.argc; i++) {
		memcpy(to++, at, sizeof(*at)); /* execve() does not write to it */
		*at += strlen(*at) + 1;
	}
	*to++ = NULL;
	return to;
}

int process_args_parse(struct process_args *c, const void *msg, size_t len, struct err *err)
{
	const char *at = agent_msg_string(msg, len, 0);
	char **to;

	memcpy(&c->m, (const char *)msg + sizeof(struct agent_hdr), sizeof(c->m));
	c->strings = at;
	to = build_argv(c, pointers, &at);
	c->env = at;
	c->envp = to;
	for (uint32_t i = 0; i < c->m.envc; i++) {
		const char *eq = strchr(at, '=');

		if (!eq || eq == at)
			return err_set(err, ERR_INVALID,
				       "environment: \"%.100s\" is not NAME=VALUE", at);
		memcpy(to++, &at, sizeof(at));
		at += strlen(at) + 1;
	}
	*to = NULL;
	c->env_len = (size_t)(at - c->env);
	c->cwd = at;
	c->user_spec = at + strlen(at) + 1;
	c->landlock = c->m.flags & AGENT_LANDLOCK ? c->user_spec + strlen(c->user_spec) + 1 : NULL;
	if (strlen(c->cwd) >= AGENT_PATH_MAX)
		return err_set(err, ERR_INVALID, "working directory: path too long");
	if (passwd_resolve(c->user_spec, &c->user, err) < 0)
		return -1;
	if (!c->user.name[0])
		snprintf(c->user.name, sizeof(c->user.name), "%u", c->user.cred.uid);
	add_default_vars(c);
	return 0;
}
