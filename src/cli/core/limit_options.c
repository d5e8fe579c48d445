/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/limit_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

static int set_bytes(struct template *t, const char *field, const char *name, const char *value,
		     uint64_t min, uint64_t max, struct err *err)
{
	char a[SIZE_TEXT], b[SIZE_TEXT], c[SIZE_TEXT];
	uint64_t v;

	if (units_parse_bytes(name, value, &v, err) < 0)
		return -1;
	if (v < min || v > max)
		return err_set(err, ERR_INVALID, "%s: %s is not in %s..%s", name,
			       units_format(v, a), units_format(min, b), units_format(max, c));
	return template_set_limit(t, field, v, err);
}

static int set_count(struct template *t, const char *field, const char *name, const char *value,
		     uint64_t min, uint64_t max, struct err *err)
{
	uint64_t v;

	if (units_parse_count(name, value, min, max, &v, err) < 0)
		return -1;
	return template_set_limit(t, field, v, err);
}

int limit_opt_memory(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_bytes(ctx, "memory_bytes", name, value, LIMITS_MEMORY_MIN, LIMITS_MEMORY_MAX,
			 err);
}

int limit_opt_disk(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_bytes(ctx, "disk_bytes", name, value, LIMITS_DISK_MIN, LIMITS_DISK_MAX, err);
}

int limit_opt_file_size(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_bytes(ctx, "file_bytes", name, value, LIMITS_FILE_MIN, LIMITS_DISK_MAX, err);
}

int limit_opt_output(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_bytes(ctx, "output_bytes", name, value, LIMITS_OUTPUT_MIN, LIMITS_OUTPUT_MAX,
			 err);
}

int limit_opt_inodes(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_count(ctx, "inodes", name, value, LIMITS_INODES_MIN, LIMITS_INODES_MAX, err);
}

int limit_opt_pids(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_count(ctx, "pids", name, value, LIMITS_PIDS_MIN, LIMITS_PIDS_MAX, err);
}

int limit_opt_open_files(void *ctx, const char *name, const char *value, struct err *err)
{
	return set_count(ctx, "open_files", name, value, LIMITS_FILES_MIN, LIMITS_FILES_MAX, err);
}

int limit_opt_cpus(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t v;

	if (units_parse_milli(name, value, &v, err) < 0)
		return -1;
	if (v < LIMITS_CPU_MILLI_MIN || v > LIMITS_CPU_MILLI_MAX)
		return err_set(err, ERR_INVALID, "%s: \"%.20s\" is not in 0.01..1024", name, value);
	return template_set_limit(ctx, "cpu_milli", v, err);
}

int limit_opt_env(void *ctx, const char *name, const char *value, struct err *err)
{
	return template_set_env(ctx, value, err) < 0 ? err_ctx(err, "%s", name) : 0;
}

static int set_text(char **field, const char *value, struct err *err)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : err_sys(err, ENOMEM, "option");
}

int limit_opt_workdir(void *ctx, const char *name, const char *value, struct err *err)
{
	struct template *t = ctx;

	if (value[0] != '/')
		return err_set(err, ERR_INVALID, "%s: \"%.100s\" is not an absolute path", name,
			       value);
	return set_text(&t->workdir, value, err);
}

int limit_opt_user(void *ctx, const char *name, const char *value, struct err *err)
{
	struct template *t = ctx;
	uint32_t uid, gid;

	if (!value[0])
		return err_set(err, ERR_INVALID, "%s: empty", name);
	if (template_parse_user(value, &uid, &gid, err) < 0)
		return err_ctx(err, "%s", name);
	return set_text(&t->user, value, err);
}

int limit_opt_root(void *ctx, const char *name, const char *value, struct err *err)
{
	struct template *t = ctx;

	(void)name;
	(void)value;
	(void)err;
	t->class = KEEPER_CLASS_ROOT;
	return 0;
}

int limit_opt_require(void *ctx, const char *name, const char *value, struct err *err)
{
	struct template *t = ctx;

	(void)name;
	(void)value;
	(void)err;
	t->demand = KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK;
	return 0;
}

int limit_opt_check(const struct template *t, struct err *err)
{
	uint32_t uid, gid;

	if (t->user && template_parse_user(t->user, &uid, &gid, err) > 0 && (!uid || !gid) &&
	    t->class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID, "--user: 0 needs --root");
	return 0;
}
