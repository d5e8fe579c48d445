/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/cgroup_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "runtime/linux_calls.h"
#include "runtime/mount.h"
#include "wire/keeper_proto.h"

static const char *const v1_names[CGROUP_V1_COUNT] = { "memory", "cpu", "pids" };

static bool has_word(const char *list, const char *word, const char *separators)
{
	size_t n = strlen(word);

	for (const char *p = list; *p; p += strspn(p, separators)) {
		size_t len = strcspn(p, separators);

		if (len == n && memcmp(p, word, n) == 0)
			return true;
		p += len;
		if (!*p)
			break;
	}
	return false;
}

/* Parses one line of mountinfo and opens the mount point if it is a needed hierarchy. */
static void parse_mount(struct cgroup_host *h, char *line)
{
	char *sep = strstr(line, " - "), *point = line, *type, *options, *save;

	if (!sep)
		return;
	*sep = 0;
	for (int i = 0; i < 4 && point; i++)
		point = strchr(point, ' ') ? strchr(point, ' ') + 1 : NULL;
	if (!point)
		return;
	point[strcspn(point, " ")] = 0;
	type = strtok_r(sep + 3, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	options = strtok_r(NULL, " \n", &save);
	if (!type || !options)
		return;
	if (strcmp(type, "cgroup2") == 0 && h->v2_parent < 0)
		h->v2_parent = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (strcmp(type, "cgroup") != 0)
		return;
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		if (h->v1_parent[i] < 0 && has_word(options, v1_names[i], ","))
			h->v1_parent[i] = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void find_mounts(struct cgroup_host *h)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return;
	while (getline(&line, &size, f) > 0)
		parse_mount(h, line);
	free(line);
	fclose(f);
}

/* The kernel has a v2 tree even if the host does not mount it: mount it in the keeper's own mount
 * namespace. */
static void mount_v2(struct cgroup_host *h, const char *scratch)
{
	auto_close int mnt =
		mount_new("cgroup2", NULL, 0, SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);

	if (mnt >= 0 && mount_attach(mnt, AT_FDCWD, scratch) == 0)
		h->v2_parent = steal_fd(&mnt);
}

static int read_own_group(char *path, size_t size)
{
	char text[4096], *p;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return -1;
	p = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!p)
		return -1;
	p += *p == '\n';
	p[strcspn(p, "\n")] = 0;
	return snprintf(path, size, ".%s", p + 3) < (int)size ? 0 : -1;
}

static bool is_delegated(int dir)
{
	char v[4];

	return fgetxattr(dir, "trusted.delegate", v, sizeof(v)) == 1 ||
	       fgetxattr(dir, "user.delegate", v, sizeof(v)) == 1;
}

static void set_v2_base(struct cgroup_host *h, int base)
{
	close(h->v2_parent);
	h->v2_parent = base;
}

/* LODGE_CGROUP names a cgroup that outlives the service. systemd cannot start a service in its own
 * cgroup while that cgroup enables controllers for sandboxes of the previous start. */
static bool choose_named(struct cgroup_host *h, const char *name)
{
	/* only a cgroup of this tree, no symbolic link and no other mount */
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve =
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	char path[512];
	int base;

	if (name[0] != '/' || snprintf(path, sizeof(path), ".%s", name) >= (int)sizeof(path))
		return false;
	base = sys_openat2(h->v2_parent, path, &how);
	if (base < 0)
		return false;
	set_v2_base(h, base);
	return true;
}

/* The parent of lodge-I: the cgroup that LODGE_CGROUP names; else the keeper's own, if systemd
 * delegated it (Delegate=) or an ordinary user can write to it; else the root of the tree. */
static void choose_v2_base(struct cgroup_host *h)
{
	const char *name = secure_getenv("LODGE_CGROUP");
	auto_close int own = -1;
	char path[512];

	if (name && *name) {
		if (choose_named(h, name))
			return;
		h->named_missing = true;
	}
	if (read_own_group(path, sizeof(path)) < 0 || strcmp(path, "./") == 0)
		return;
	own = openat(h->v2_parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own >= 0 && faccessat(own, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
	    (geteuid() != 0 || is_delegated(own)))
		set_v2_base(h, steal_fd(&own));
}

/* v2 allows processes only in leaf cgroups: move those of the parent into a child. */
static void move_processes(int base, const char *name)
{
	char text[4096], leaf[64], *save;

	if (file_read_at(base, "cgroup.type", text, sizeof(text)) < 0)
		return; /* the root of the tree may have both */
	if (file_read_at(base, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	snprintf(leaf, sizeof(leaf), "%s.self", name);
	if (mkdirat(base, leaf, 0755) < 0 && errno != EEXIST)
		return;
	snprintf(leaf, sizeof(leaf), "%s.self/cgroup.procs", name);
	for (char *pid = strtok_r(text, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save))
		(void)file_printf_at(base, leaf, "%s", pid);
}

static bool has_controllers(int dir)
{
	char text[256];

	return file_read_at(dir, "cgroup.controllers", text, sizeof(text)) > 0 &&
	       has_word(text, "memory", " \n") && has_word(text, "cpu", " \n") &&
	       has_word(text, "pids", " \n");
}

static int make_group(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void enable_v2_limits(struct cgroup_host *h)
{
	static const char controllers[] = "+cpu +memory +pids";

	if (!has_controllers(h->v2_parent))
		return;
	if (file_printf_at(h->v2_parent, "cgroup.subtree_control", controllers) < 0) {
		move_processes(h->v2_parent, h->name);
		if (file_printf_at(h->v2_parent, "cgroup.subtree_control", controllers) < 0)
			return;
	}
	h->v2_limits = file_printf_at(h->v2, "cgroup.subtree_control", controllers) == 0;
	/* for statistics only */
	if (file_printf_at(h->v2_parent, "cgroup.subtree_control", "+io") == 0)
		(void)file_printf_at(h->v2, "cgroup.subtree_control", "+io");
}

void cgroup_host_init(struct cgroup_host *h, uint64_t instance, const char *scratch)
{
	*h = (struct cgroup_host){ .v2 = -1, .v2_parent = -1 };
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		h->v1[i] = h->v1_parent[i] = -1;
	snprintf(h->name, sizeof(h->name), "lodge-%016llx", (unsigned long long)instance);

	find_mounts(h);
	if (h->v2_parent < 0)
		mount_v2(h, scratch);
	if (h->v2_parent >= 0) {
		choose_v2_base(h);
		h->v2 = make_group(h->v2_parent, h->name);
	}
	if (h->v2 >= 0)
		enable_v2_limits(h);
	for (int i = 0; !h->v2_limits && i < CGROUP_V1_COUNT; i++)
		if (h->v1_parent[i] >= 0)
			h->v1[i] = make_group(h->v1_parent[i], h->name);
}

static void remove_and_close(int *dir, int *parent, const char *name)
{
	if (*dir >= 0)
		close(*dir);
	if (*parent >= 0) {
		(void)unlinkat(*parent, name, AT_REMOVEDIR);
		close(*parent);
	}
	*dir = *parent = -1;
}

void cgroup_host_fini(struct cgroup_host *h)
{
	remove_and_close(&h->v2, &h->v2_parent, h->name);
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		remove_and_close(&h->v1[i], &h->v1_parent[i], h->name);
}

uint32_t cgroup_host_features(const struct cgroup_host *h)
{
	uint32_t f = 0;
	bool v1 = true;

	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		v1 = v1 && h->v1[i] >= 0;
	if (h->v2 >= 0 && faccessat(h->v2, "cgroup.kill", F_OK, 0) == 0)
		f |= KEEPER_HAS_KILL;
	if (h->v2_limits)
		f |= KEEPER_HAS_CGROUP | KEEPER_HAS_CGROUP_V2;
	else if (v1)
		f |= KEEPER_HAS_CGROUP;
	return f;
}
