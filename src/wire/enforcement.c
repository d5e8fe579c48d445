/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/enforcement.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* Limits that one mechanism enforces. */
static const struct group {
	unsigned demand; /* enum keeper_demand */
	const char *title; /* of all of them */
	const char *limits[5]; /* fields of struct limits, and names in JSON */
} groups[] = {
	{ KEEPER_DEMAND_CGROUP,
	  "memory, CPU and process limits",
	  { "memory_bytes", "cpu_milli", "cpus", "cpu_weight", "pids" } },
	{ KEEPER_DEMAND_DISK, "disk limits", { "disk_bytes" } },
	{ KEEPER_DEMAND_INODES, "limits on the number of files (inodes)", { "inodes" } },
};

static const struct group *find_group(const char *limit)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		for (size_t k = 0; k < ARRAY_LEN(groups[i].limits); k++)
			if (groups[i].limits[k] && strcmp(groups[i].limits[k], limit) == 0)
				return &groups[i];
	return NULL;
}

static const char *cgroup_problem(const struct enforcement *f)
{
	if (f->features & KEEPER_HAS_CGROUP)
		return NULL;
	return f->features & KEEPER_HAS_ROOT
		       ? "this host has no cgroup with memory, cpu and pids controllers"
		       : "no cgroup with memory, cpu and pids controllers is delegated to this "
			 "user";
}

static const char *disk_problem(const struct enforcement *f)
{
	if (f->features & KEEPER_HAS_DISK_LIMIT)
		return NULL;
	return *f->disk_problem ? f->disk_problem : "the file system has no quota";
}

static const char *group_problem(const struct enforcement *f, enum keeper_store store,
				 const struct group *g)
{
	const char *why;

	if (!f->known)
		return NULL;
	if (g->demand == KEEPER_DEMAND_CGROUP)
		return cgroup_problem(f);
	if (store == KEEPER_STORE_MEMORY) /* a tmpfs limits both */
		return NULL;
	why = disk_problem(f);
	if (g->demand == KEEPER_DEMAND_DISK || why)
		return why;
	return "btrfs has no quota for the number of files; disk_bytes also counts their metadata";
}

const char *enforcement_problem(const struct enforcement *f, enum keeper_store store,
				const char *limit)
{
	const struct group *g = find_group(limit);

	return g ? group_problem(f, store, g) : NULL;
}

unsigned enforcement_demand(const char *limit)
{
	const struct group *g = find_group(limit);

	return g ? g->demand : 0;
}

int enforcement_check(const struct enforcement *f, enum keeper_store store, unsigned demand,
		      struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		const char *why =
			demand & groups[i].demand ? group_problem(f, store, &groups[i]) : NULL;

		if (why)
			return err_set(err, ERR_CONFLICT,
				       "%s cannot be enforced on this host: %s; run `lodge doctor`",
				       groups[i].title, why);
	}
	return 0;
}

const char *enforcement_describe(const struct enforcement *f, enum keeper_store store,
				 unsigned demand, char buf[ENFORCEMENT_TEXT])
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(groups) && n < ENFORCEMENT_TEXT; i++) {
		const char *why =
			demand & groups[i].demand ? group_problem(f, store, &groups[i]) : NULL;

		if (why)
			n += (size_t)snprintf(buf + n, ENFORCEMENT_TEXT - n, "%s%s (%s)",
					      n ? ", " : "", groups[i].title, why);
	}
	return buf;
}
