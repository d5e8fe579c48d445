/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/template.h"
#include "sandbox/template/template_json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/units.h"
#include "wire/enforcement.h"

#define LIMIT(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct limits, name), sizeof(((struct limits *)0)->name)           \
	}

static const struct limit_field {
	const char *name;
	size_t offset, size;
} fields[] = {
	LIMIT(memory_bytes), LIMIT(disk_bytes),	  LIMIT(inodes),
	LIMIT(file_bytes),   LIMIT(output_bytes), LIMIT(cpu_milli),
	LIMIT(cpu_weight),   LIMIT(pids),	  LIMIT(open_files),
};

void template_init(struct template *t)
{
	memset(t, 0, sizeof(*t));
	t->limits = limits_default();
}

void template_fini(struct template *t)
{
	free(t->user);
	free(t->workdir);
	free(t->policy);
	free(t->layer);
	free(t->made.from);
	free(t->made.snapshot);
	for (size_t i = 0; i < t->nenv; i++)
		free(t->env[i]);
	template_init(t);
}

const char *template_limit_name(unsigned n)
{
	return n < ARRAY_LEN(fields) ? fields[n].name : NULL;
}

uint64_t template_limit_value(const struct template *t, unsigned n)
{
	const char *at = (const char *)&t->limits + fields[n].offset;
	uint32_t small;
	uint64_t large;

	if (fields[n].size == sizeof(large)) {
		memcpy(&large, at, sizeof(large));
		return large;
	}
	memcpy(&small, at, sizeof(small));
	return small;
}

uint64_t template_limit_of(const struct template *t, const char *name)
{
	const struct template usual = { .limits = limits_default() };
	unsigned i = 0;

	while (strcmp(fields[i].name, name) != 0)
		i++;
	return template_limit_value(t->limits_set & 1u << i ? t : &usual, i);
}

static void copy_field(const struct limit_field *f, const struct limits *from, struct limits *to)
{
	memcpy((char *)to + f->offset, (const char *)from + f->offset, f->size);
}

int template_set_limit(struct template *t, const char *name, uint64_t value, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++) {
		char *at = (char *)&t->limits + fields[i].offset;
		uint32_t small = (uint32_t)value;

		if (strcmp(name, fields[i].name) != 0)
			continue;
		if (fields[i].size == sizeof(small) && value > UINT32_MAX)
			return err_set(err, ERR_INVALID, "%s: value too large", name);
		if (fields[i].size == sizeof(small))
			memcpy(at, &small, sizeof(small));
		else
			memcpy(at, &value, sizeof(value));
		if (limits_check(&t->limits, "", err) < 0)
			return -1;
		t->limits_set |= 1u << i;
		return 0;
	}
	return err_set(err, ERR_INVALID, "unknown limit \"%.40s\"", name);
}

bool template_has_limit(const struct template *t, const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(name, fields[i].name) == 0)
			return t->limits_set & 1u << i;
	return false;
}

void template_demand_limits(struct template *t)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (t->limits_set & 1u << i)
			t->demand |= enforcement_demand(fields[i].name);
}

int template_set_env(struct template *t, const char *assignment, struct err *err)
{
	const char *eq = strchr(assignment, '=');
	size_t key = eq ? (size_t)(eq - assignment) + 1 : 0;
	char *copy;

	if (!eq || eq == assignment)
		return err_set(err, ERR_INVALID, "\"%.40s\" is not NAME=VALUE", assignment);
	copy = strdup(assignment);
	if (!copy)
		return err_sys(err, ENOMEM, "environment");
	for (size_t i = 0; i < t->nenv; i++) {
		if (!strncmp(t->env[i], assignment, key)) {
			free(t->env[i]);
			t->env[i] = copy;
			return 0;
		}
	}
	if (t->nenv >= TEMPLATE_ENV_MAX) {
		free(copy);
		return err_set(err, ERR_LIMIT, "more than %d environment variables",
			       TEMPLATE_ENV_MAX);
	}
	t->env[t->nenv++] = copy;
	return 0;
}

int template_parse_user(const char *user, uint32_t *uid, uint32_t *gid, struct err *err)
{
	char first[16];
	uint64_t u, g;
	size_t n = strcspn(user, ":");

	if (user[0] < '0' || user[0] > '9')
		return 0;
	if (n >= sizeof(first))
		return err_set(err, ERR_INVALID, "user \"%.40s\": out of range", user);
	memcpy(first, user, n);
	first[n] = '\0';
	if (units_parse_count("user", first, 0, UINT16_MAX, &u, err) < 0)
		return -1;
	g = u;
	if (user[n] && units_parse_count("group", user + n + 1, 0, UINT16_MAX, &g, err) < 0)
		return -1;
	if (!keeper_user_is_valid((uint32_t)u) || !keeper_user_is_valid((uint32_t)g))
		return err_set(err, ERR_INVALID, "user \"%.40s\": this id is reserved", user);
	*uid = (uint32_t)u;
	*gid = (uint32_t)g;
	return 1;
}

int template_set_string(char **field, const char *value, struct err *err)
{
	char *copy = value ? strdup(value) : NULL;

	if (value && !copy)
		return err_sys(err, ENOMEM, "template");
	free(*field);
	*field = copy;
	return 0;
}

int template_merge(struct template *base, const struct template *over, struct err *err)
{
	if (over->class == KEEPER_CLASS_ROOT) {
		base->class = KEEPER_CLASS_ROOT;
		template_set_string(&base->user, NULL, err);
	}
	if (over->user && template_set_string(&base->user, over->user, err) < 0)
		return -1;
	base->workdir_overridden |= over->workdir != NULL;
	if (over->workdir && template_set_string(&base->workdir, over->workdir, err) < 0)
		return -1;
	if (over->policy && template_set_string(&base->policy, over->policy, err) < 0)
		return -1;
	for (size_t i = 0; i < over->nenv; i++)
		if (template_set_env(base, over->env[i], err) < 0)
			return -1;
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (over->limits_set & 1u << i)
			copy_field(&fields[i], &over->limits, &base->limits);
	base->limits_set |= over->limits_set;
	base->demand |= over->demand;
	return 0;
}

/* A limit of 0 means unlimited. */
static bool exceeds(const struct template *t, const struct template *most, unsigned n)
{
	uint64_t value = template_limit_value(t, n), bound = template_limit_value(most, n);

	if (!(most->limits_set & 1u << n) || !bound)
		return false;
	return value > bound || !value;
}

int template_cap(struct template *t, const struct template *most, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (exceeds(t, most, i) &&
		    template_set_limit(t, fields[i].name, template_limit_value(most, i), err) < 0)
			return -1;
	return 0;
}

const char *template_exceeded_limit(const struct template *t, const struct template *most)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if ((t->limits_set & 1u << i) && exceeds(t, most, i))
			return fields[i].name;
	return NULL;
}

/* The keeper accepts only normalized paths; a directory with another spelling may exist. */
bool template_can_make_workdir(const struct template *t)
{
	const char *workdir = t->workdir;
	char path[KEEPER_PATH_SIZE] = { 0 };

	if (!workdir || strlen(workdir) >= sizeof(path))
		return false;
	memcpy(path, workdir, strlen(workdir) + 1);
	return keeper_path_is_valid(path);
}

int template_apply(const struct template *t, struct sandbox_spec *spec, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (t->limits_set & 1u << i)
			copy_field(&fields[i], &t->limits, &spec->limits);
	limits_fit_output(&spec->limits);
	spec->class = t->class;
	spec->demand |= t->demand;
	if (!t->workdir_overridden && template_can_make_workdir(t))
		spec->workdir = t->workdir;
	if (t->class == KEEPER_CLASS_ROOT)
		spec->uid = spec->gid = 0;
	if (t->user && template_parse_user(t->user, &spec->uid, &spec->gid, err) < 0)
		return err_ctx(err, "template %s", spec->template);
	return 0;
}

/* ---- on disk --------------------------------------------------------------------------------- */

bool template_name_is_valid(const char *name)
{
	char id[KEEPER_ID_SIZE] = { 0 };

	return snprintf(id, sizeof(id), "%s", name) < (int)sizeof(id) && keeper_id_is_valid(id) &&
	       !keeper_is_image_layer(id);
}

bool template_is_builtin(const char *name)
{
	return !strcmp(name, "host") || !strcmp(name, "empty");
}

int template_make_dir(const char *home, const char *name, struct err *err)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/templates", home);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", path);
	snprintf(path, sizeof(path), "%s/templates/%s", home, name);
	return mkdir(path, 0755) < 0 && errno != EEXIST ? err_sys(err, errno, "%s", path) : 0;
}

static int make_path(const char *home, const char *name, const char *rest, char *ret, size_t size,
		     struct err *err)
{
	int n;

	if (!template_name_is_valid(name))
		return err_set(err, ERR_INVALID,
			       "template \"%.64s\": invalid name; use a-z, 0-9, '.', '_' and '-'",
			       name);
	n = snprintf(ret, size, "%s/templates/%s/%s", home, name, rest);
	if (n < 0 || (size_t)n >= size)
		return err_sys(err, ENAMETOOLONG, "template %s", name);
	return 0;
}

int template_load(const char *home, const char *name, struct template *ret, struct err *err)
{
	char path[4096], text[TEMPLATE_TEXT_MAX];
	auto_close int fd = -1;
	ssize_t n;

	template_init(ret);
	if (template_is_builtin(name))
		return 0;
	if (make_path(home, name, "template.json", path, sizeof(path), err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
			       ? err_set(err, ERR_NOT_FOUND, "template \"%s\" does not exist", name)
			       : err_sys(err, errno, "%s", path);
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return err_sys(err, errno, "%s", path);
	if ((size_t)n == sizeof(text))
		return err_set(err, ERR_INVALID, "%s: too large", path);
	return template_parse(path, text, (size_t)n, ret, err);
}

int template_remove(const char *home, const char *name, struct err *err)
{
	char path[4096];

	if (make_path(home, name, "template.json", path, sizeof(path), err) < 0)
		return -1;
	if (unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_sys(err, errno, "%s", path);
	template_unmark(home, name, TEMPLATE_UNFINISHED);
	template_unmark(home, name, TEMPLATE_REMOVING);
	*strrchr(path, '/') = '\0';
	if (rmdir(path) < 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(err, errno, "%s", path);
	return 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_name(const struct dirent *e)
{
	return template_name_is_valid(e->d_name);
}

static bool template_has_file(const char *home, const char *name, const char *file)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/templates/%s/%s", home, name, file);
	return stat(path, &st) == 0;
}

static bool is_template(const char *home, const char *name)
{
	return template_has_file(home, name, "template.json");
}

static bool is_marked(const char *home, const char *name)
{
	return template_has_mark(home, name, TEMPLATE_UNFINISHED) ||
	       template_has_mark(home, name, TEMPLATE_REMOVING);
}

static int list_templates(const char *home, bool (*counts)(const char *home, const char *name),
			  template_fn *fn, void *arg, struct err *err)
{
	struct dirent **list = NULL;
	char path[4096];
	int n, r = 0;

	snprintf(path, sizeof(path), "%s/templates", home);
	n = scandir(path, &list, is_name, compare_names);
	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "%s", path);
	for (int i = 0; i < n; i++) {
		if (!r && counts(home, list[i]->d_name))
			r = fn(arg, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return r;
}

int template_each(const char *home, template_fn *fn, void *arg, struct err *err)
{
	return list_templates(home, is_template, fn, arg, err);
}

int template_each_marked(const char *home, template_fn *fn, void *arg, struct err *err)
{
	return list_templates(home, is_marked, fn, arg, err);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static const char *const marks[] = {
	[TEMPLATE_UNFINISHED] = "unfinished", [TEMPLATE_REMOVING] = "removing"
};

int template_mark(const char *home, const char *name, enum template_mark mark, struct err *err)
{
	char path[4096];
	auto_close int fd = -1;

	if (make_path(home, name, marks[mark], path, sizeof(path), err) < 0 ||
	    template_make_dir(home, name, err) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 ? err_sys(err, errno, "%s", path) : 0;
}

void template_unmark(const char *home, const char *name, enum template_mark mark)
{
	char path[4096];
	struct err ignored;

	if (make_path(home, name, marks[mark], path, sizeof(path), &ignored) == 0)
		(void)unlink(path);
}

bool template_has_mark(const char *home, const char *name, enum template_mark mark)
{
	return template_has_file(home, name, marks[mark]);
}
