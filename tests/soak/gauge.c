/* SPDX-License-Identifier: Apache-2.0 */
#include "soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

enum { SETTLE_ROUNDS = 100, SETTLE_US = 100000 };

static const struct {
	const char *name;
	long slack; /* allowed above the first figure */
	long per; /* plus one for so many cycles; 0: none */
} kinds[GAUGES] = {
	[KEEPER_FDS] = { "keeper fds", 0, 0 },
	[KEEPER_KB] = { "keeper kB", 256, 0 },
	[KEEPER_MOUNTS] = { "keeper mounts", 0, 0 },
	[KEEPER_CHILDREN] = { "sandboxes", 0, 0 },
	[ENGINE_FDS] = { "engine fds", 0, 0 },
	[ENGINE_KB] = { "engine kB", 512, 0 },
	[ENGINE_MOUNTS] = { "host mounts", 0, 0 },
	[CGROUPS] = { "cgroups", 0, 0 },
	[HOME_FILES] = { "home files", 0, 0 },
	[RUN_FILES] = { "run files", 0, 0 },
	[LOOPS] = { "loops", 0, 0 },
	/* Other processes use these too, and the allocator counts pages; a leak in every fortieth
	 * cycle is still detected. */
	[NET_NS] = { "netns", 64, 40 },
	[USER_NS] = { "userns", 96, 40 },
	[MOUNTS] = { "all mounts", 512, 20 },
};

static long allowed(int which, long cycles)
{
	return kinds[which].slack + (kinds[which].per ? cycles / kinds[which].per : 0);
}

/* Directories below the keeper's own cgroup, in every hierarchy. */
static long count_cgroups(const struct soak *s)
{
	static const char *const roots[] = { "",	 "/unified", "/memory", "/cpu",
					     "/cpuacct", "/pids",    "/systemd" };
	char path[160], name[17] = "";
	FILE *f;
	long n = 0;

	snprintf(path, sizeof(path), "%s/d/group", s->run);
	f = fopen(path, "re");
	if (!f || !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/lodge-%s", roots[i], name);
		n += proc_count_dirs(path);
	}
	return n;
}

static void read_once(const struct soak *s, struct gauges *g)
{
	long *v = g->v;

	v[KEEPER_FDS] = proc_count_fds(s->keeper_pid);
	v[KEEPER_KB] = (long)proc_kb(s->keeper_pid, "status", "VmRSS:");
	v[KEEPER_MOUNTS] = proc_count_mounts(s->keeper_pid);
	v[KEEPER_CHILDREN] = proc_count_children(s->keeper_pid);
	v[ENGINE_FDS] = proc_count_fds(getpid());
	v[ENGINE_KB] = (long)proc_kb(getpid(), "status", "VmRSS:");
	v[ENGINE_MOUNTS] = proc_count_mounts(getpid());
	v[CGROUPS] = count_cgroups(s);
	v[HOME_FILES] = proc_count_files(s->home);
	v[RUN_FILES] = proc_count_files(s->run);
	v[LOOPS] = proc_count_loops(s->home);
	v[NET_NS] = proc_slab("net_namespace");
	v[USER_NS] = proc_slab("user_namespace");
	v[MOUNTS] = proc_slab("mnt_cache");
}

static bool is_settled(const struct soak *s, const struct gauges *base, const struct gauges *now,
		       long cycles)
{
	char trash[128];

	snprintf(trash, sizeof(trash), "%s/d/trash", s->run);
	if (proc_count_files(trash) > 0)
		return false;
	for (int i = 0; base && i < GAUGES; i++)
		if (now->v[i] > base->v[i] + allowed(i, cycles))
			return false;
	return true;
}

void gauge_read(const struct soak *s, const struct gauges *base, long cycles, struct gauges *ret)
{
	/* once more than needed, because asynchronous work has just begun */
	for (int i = 0; i < SETTLE_ROUNDS; i++) {
		usleep(i == 0 ? 10 * SETTLE_US : SETTLE_US);
		read_once(s, ret);
		if (is_settled(s, base, ret, cycles))
			break;
	}
}

void gauge_print(const struct gauges *g)
{
	for (int i = 0; i < GAUGES; i++)
		if (g->v[i] >= 0)
			printf(" | %s %ld", kinds[i].name, g->v[i]);
	printf("\n");
	fflush(stdout);
}

int gauge_grown(const struct gauges *base, const struct gauges *now, long cycles)
{
	int n = 0;

	for (int i = 0; i < GAUGES; i++) {
		if (now->v[i] <= base->v[i] + allowed(i, cycles))
			continue;
		fprintf(stderr, "soak: %s grew from %ld to %ld\n", kinds[i].name, base->v[i],
			now->v[i]);
		n++;
	}
	return n;
}
