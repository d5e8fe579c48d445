/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the commands that ask lodged, and what the service calls what they say. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"

#define TEXT_OPTION(field)                                                                         \
	int ask_##field(void *ctx, const char *name, const char *value, struct err *err)           \
	{                                                                                          \
		((struct api_cmd *)ctx)->field = value;                                            \
		return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);                  \
	}
#define FLAG_OPTION(field)                                                                         \
	int ask_##field(void *ctx, const char *name, const char *value, struct err *err)           \
	{                                                                                          \
		(void)name;                                                                        \
		(void)value;                                                                       \
		(void)err;                                                                         \
		((struct api_cmd *)ctx)->field = true;                                             \
		return 0;                                                                          \
	}

TEXT_OPTION(session)
TEXT_OPTION(user)
TEXT_OPTION(state)
TEXT_OPTION(project)
TEXT_OPTION(fragment)
TEXT_OPTION(tenant)
TEXT_OPTION(scope)
TEXT_OPTION(name)
TEXT_OPTION(key)
TEXT_OPTION(template)
TEXT_OPTION(snapshot)
TEXT_OPTION(policy)
TEXT_OPTION(reason)
TEXT_OPTION(count)
TEXT_OPTION(by)
TEXT_OPTION(since)
TEXT_OPTION(expires)
TEXT_OPTION(file)
TEXT_OPTION(allow)
TEXT_OPTION(deny)
TEXT_OPTION(idle)
TEXT_OPTION(lifetime)
TEXT_OPTION(max_active)
TEXT_OPTION(on_exceed)
TEXT_OPTION(memory)
TEXT_OPTION(cpus)
TEXT_OPTION(pids)
TEXT_OPTION(disk)
TEXT_OPTION(workdir)
TEXT_OPTION(timeout)
TEXT_OPTION(signal)
TEXT_OPTION(unset)
TEXT_OPTION(id)
TEXT_OPTION(team)
TEXT_OPTION(title)
TEXT_OPTION(role)
TEXT_OPTION(sandboxes)
TEXT_OPTION(cpu)
FLAG_OPTION(json)
FLAG_OPTION(yes)
FLAG_OPTION(quiet)
FLAG_OPTION(all)
FLAG_OPTION(stop)
FLAG_OPTION(follow)
FLAG_OPTION(once)
FLAG_OPTION(keys)
FLAG_OPTION(tty)
FLAG_OPTION(interactive)
FLAG_OPTION(detach)
FLAG_OPTION(fresh)
FLAG_OPTION(no_keys)
FLAG_OPTION(oci)
FLAG_OPTION(look)

/* Nothing is a text too. */
int ask_script(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)err;
	((struct api_cmd *)ctx)->script = value;
	return 0;
}

int ask_env(void *ctx, const char *name, const char *value, struct err *err)
{
	struct api_cmd *a = ctx;
	const char *eq = strchr(value, '=');

	if (!eq || eq == value)
		return err_set(err, ERR_INVALID, "%s: \"%.60s\" is not NAME=VALUE", name, value);
	if (!a->env)
		a->env = json_object();
	return json_object_setn_new(a->env, value, (size_t)(eq - value), json_string(eq + 1)) < 0
		       ? err_set(err, ERR_INVALID, "%s: not UTF-8", name)
		       : 0;
}

/* ---- what the service calls them ------------------------------------------------------------- */

#define FILLS(field, option, member)                                                               \
	{                                                                                          \
		field ": ", option, offsetof(struct api_cmd, member)                               \
	}

static const struct {
	const char *field, *option;
	size_t at;
} fills[] = {
	FILLS("key", "--key", key),
	FILLS("user", "--user", user),
	FILLS("project", "--project", project),
	FILLS("template", "--template", template),
	FILLS("snapshot", "--snapshot", snapshot),
	FILLS("policy", "--policy", policy),
	FILLS("name", "--name", name),
	FILLS("tenant", "--tenant", tenant),
	FILLS("scope", "--scope", scope),
	FILLS("expires_in_ms", "--expires", expires),
	FILLS("idle_timeout_ms", "--idle", idle),
	FILLS("max_lifetime_ms", "--lifetime", lifetime),
	FILLS("max_active_per_user", "--max-active", max_active),
	FILLS("on_exceed", "--on-exceed", on_exceed),
	FILLS("commands: allow", "--allow", allow),
	FILLS("commands: deny", "--deny", deny),
	FILLS("ms", "--by", by),
	FILLS("limits: memory_bytes", "--memory", memory),
	FILLS("limits: cpu_milli", "--cpus", cpus),
	FILLS("limits: pids", "--pids", pids),
	FILLS("limits: disk_bytes", "--disk", disk),
	FILLS("cwd", "--workdir", workdir),
	FILLS("timeout_ms", "--timeout", timeout),
	FILLS("signal", "--signal", signal),
};

void api_cmd_name_option(const struct api_cmd *a, struct err *err)
{
	char rest[sizeof(err->msg)];

	for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
		size_t n = strlen(fills[i].field);
		const char *const *given = (const void *)((const char *)a + fills[i].at);

		if (!*given || strncmp(err->msg, fills[i].field, n) != 0)
			continue;
		snprintf(rest, sizeof(rest), "%s", err->msg + n);
		snprintf(err->msg, sizeof(err->msg), "%s: %s", fills[i].option, rest);
		return;
	}
}
