/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups: neither visible nor reachable. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* In a separate cgroup namespace every path is "/" or below it. */
static int paths(const struct check *c)
{
	char text[4096];

	(void)c;
	if (read_text("/proc/self/cgroup", text, sizeof(text)) <= 0)
		return held();
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char *path = memchr(p, '/', strcspn(p, "\n"));
		size_t len = path ? strcspn(path, "\n") : 0;

		if (!path)
			continue;
		if (strstr(path, "/..") == path || memchr(path + 1, '/', len - 1) ||
		    (len > 1 && path[1] != 'x'))
			return broken("shows a path of the host: %.*s", (int)len, path);
	}
	return held();
}

static int is_writable_group(const struct mount *m, void *arg)
{
	(void)arg;
	if (strcmp(m->type, "cgroup") != 0 && strcmp(m->type, "cgroup2") != 0)
		return 0;
	return broken("%s is mounted at %s (%s)", m->type, m->point, m->options);
}

static int mounts(const struct check *c)
{
	(void)c;
	return each_mount(is_writable_group, NULL);
}

/* Files through which a cgroup runs a command on the host (CVE-2022-0492) or moves a process out.
 */
static int files(const struct check *c)
{
	static const char *const names[] = {
		"/sys/fs/cgroup/release_agent",
		"/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/memory/release_agent",
		"/sys/fs/cgroup/memory/cgroup.procs",
		"/sys/fs/cgroup/pids/tasks",
		"/sys/fs/cgroup/unified/cgroup.procs",
		"/sys/fs/cgroup/devices/devices.allow",
	};

	(void)c;
	for (size_t i = 0; i < LEN(names); i++)
		if (access(names[i], F_OK) == 0)
			return broken("%s exists", names[i]);
	return held();
}

const struct check checks_cgroup[] = {
	{ "cgroup-paths", "/proc/self/cgroup shows no path of the host", paths, BOTH, "cgroupns" },
	{ "cgroup-mounts", "no control group file system is mounted", mounts, BOTH, "mountns" },
	{ "cgroup-files", "no file of a control group is in reach", files, BOTH, "mountns" },
	{ 0 },
};
