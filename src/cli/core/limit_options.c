/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/limit_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/core/quantity.h"

/* What the options with a size or a number set; sizes are checked against min and max here. */
static const struct limit {
	const char *option, *field;
	bool bytes;
	uint64_t min, max;
} limits[] = {
	{ "--memory", "memory_bytes", true, LIMITS_MEMORY_MIN, LIMITS_MEMORY_MAX },
	{ "-m", "memory_bytes", true, LIMITS_MEMORY_MIN, LIMITS_MEMORY_MAX },
	{ "--pids-limit", "pids", false, LIMITS_PIDS_MIN, LIMITS_PIDS_MAX },
	{ "--disk", "disk_bytes", true, LIMITS_DISK_MIN, LIMITS_DISK_MAX },
	{ "--file-size", "file_bytes", true, LIMITS_FILE_MIN, LIMITS_DISK_MAX },
	{ "--output", "output_bytes", true, LIMITS_OUTPUT_MIN, LIMITS_OUTPUT_MAX },
	{ "--inodes", "inodes", false, LIMITS_INODES_MIN, LIMITS_INODES_MAX },
	{ "--pids", "pids", false, LIMITS_PIDS_MIN, LIMITS_PIDS_MAX },
	{ "--open-files", "open_files", false, LIMITS_FILES_MIN, LIMITS_FILES_MAX },
};

static int set_limit(void *at, const char *name, const char *value, struct err *err)
{
	const struct limit *l = limits;
	char min[SIZE_TEXT], max[SIZE_TEXT];
	uint64_t v;

	while (strcmp(l->option, name) != 0)
		l++;
	if (l->bytes ? quantity_bytes(name, value, &v, err) < 0
		     : units_parse_count(name, value, l->min, l->max, &v, err) < 0)
		return -1;
	if (v < l->min || v > l->max)
		return err_set(err, ERR_INVALID, "%s %.20s: must be between %s and %s", name, value,
			       units_format(l->min, min), units_format(l->max, max));
	return template_set_limit(at, l->field, v, err);
}

static int set_cpus(void *at, const char *name, const char *value, struct err *err)
{
	uint64_t v;

	if (units_parse_milli(name, value, &v, err) < 0)
		return -1;
	if (v < LIMITS_CPU_MILLI_MIN || v > LIMITS_CPU_MILLI_MAX)
		return err_set(err, ERR_INVALID, "%s %.20s: must be between 0.01 and 1024", name,
			       value);
	return template_set_limit(at, "cpu_milli", v, err);
}

static int set_env(void *at, const char *name, const char *value, struct err *err)
{
	return template_set_env(at, value, err) < 0 ? err_ctx(err, "%s", name) : 0;
}

static int set_text(char **field, const char *value, struct err *err)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : err_sys(err, ENOMEM, "option");
}

static int set_workdir(void *at, const char *name, const char *value, struct err *err)
{
	if (value[0] != '/')
		return err_set(err, ERR_INVALID, "%s %.100s: must be an absolute path", name,
			       value);
	return set_text(&((struct template *)at)->workdir, value, err);
}

static int set_user(void *at, const char *name, const char *value, struct err *err)
{
	uint32_t uid, gid;

	if (!value[0])
		return err_set(err, ERR_INVALID, "%s: USER must not be empty", name);
	if (template_parse_user(value, &uid, &gid, err) < 0)
		return err_ctx(err, "%s", name);
	return set_text(&((struct template *)at)->user, value, err);
}

static int set_flag(void *at, const char *name, const char *value, struct err *err)
{
	struct template *t = at;

	(void)value;
	(void)err;
	if (strcmp(name, "--root") == 0)
		t->class = KEEPER_CLASS_ROOT;
	else
		t->demand = KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK;
	return 0;
}

/* clang-format off */
#define SET(name, letter, arg, fn, help) { name, letter, arg, CLI_SET, 0, help, .set = fn }
/* clang-format on */

const struct cli_option template_options[] = {
	SET("memory", 'm', "SIZE", set_limit, "memory; swap is off (512M)"),
	SET("cpus", 0, "N", set_cpus, "CPU cores, as 0.5 (a fair share)"),
	SET("pids", 0, "N", set_limit, "processes and threads (256)"),
	{ "pids-limit", 0, "N", CLI_SET, 0, "the same", .set = set_limit, .old = true },
	SET("disk", 0, "SIZE", set_limit, "disk space of its files (1G)"),
	SET("inodes", 0, "N", set_limit, "files and directories (200000)"),
	SET("file-size", 0, "SIZE", set_limit, "size of a single file (1G)"),
	SET("open-files", 0, "N", set_limit, "open files of one process (1024)"),
	SET("output", 0, "SIZE", set_limit, "output kept per stream (16M)"),
	SET("env", 'e', "NAME=VALUE", set_env, "set a variable (repeatable)"),
	SET("workdir", 'w', "DIR", set_workdir, "working directory in the sandbox"),
	SET("user", 'u', "USER", set_user, "user in the sandbox: name, uid[:gid]"),
	SET("root", 0, NULL, set_flag, "allow root in the sandbox: apt and sudo work"),
	{ NULL },
};

const struct cli_option require_options[] = {
	SET("require-limits", 0, NULL, set_flag, "fail if a limit cannot be enforced"),
	{ NULL },
};

int limit_opt_check(const struct template *t, struct err *err)
{
	uint32_t uid, gid;

	if (t->user && template_parse_user(t->user, &uid, &gid, err) > 0 && (!uid || !gid) &&
	    t->class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID, "--user %.40s: root needs --root", t->user);
	return 0;
}
