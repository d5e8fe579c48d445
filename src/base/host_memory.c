/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_io.h"

enum { TEXT = 8192, PATH = 4096 };

static uint64_t read_meminfo(const char *name)
{
	char text[TEXT];
	const char *at;

	if (file_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) <= 0)
		return 0;
	at = strstr(text, name);
	return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

/* "max" and a file that is missing are no limit. */
static uint64_t read_limit(const char *path)
{
	char text[64];
	uint64_t n;

	if (file_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return UINT64_MAX;
	n = strtoull(text, NULL, 10);
	return n ? n : UINT64_MAX;
}

/* The smallest limit of this cgroup and those above it. */
static uint64_t limit_below(const char *mount, const char *file, char *group)
{
	uint64_t least = UINT64_MAX, n;
	char path[2 * PATH];

	for (;;) {
		char *slash = strrchr(group, '/');

		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		n = read_limit(path);
		least = n < least ? n : least;
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* The group of this process, of the hierarchy that starts with `prefix` in /proc/self/cgroup. */
static uint64_t group_limit(const char *prefix, const char *mount, const char *file)
{
	char text[TEXT], group[PATH];
	const char *at;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) <= 0)
		return UINT64_MAX;
	at = strstr(text, prefix);
	if (!at)
		return UINT64_MAX;
	at += strlen(prefix);
	snprintf(group, sizeof(group), "%.*s", (int)strcspn(at, "\n"), at);
	if (strcmp(group, "/") == 0)
		group[0] = '\0';
	return limit_below(mount, file, group);
}

static uint64_t at_most(uint64_t n, uint64_t max)
{
	return n < max ? n : max;
}

uint64_t host_memory_total(void)
{
	uint64_t n = read_meminfo("MemTotal:");

	n = at_most(n, group_limit("0::", "/sys/fs/cgroup", "memory.max"));
	return at_most(n,
		       group_limit(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"));
}

uint64_t host_memory_available(void)
{
	return at_most(read_meminfo("MemAvailable:"), host_memory_total());
}
