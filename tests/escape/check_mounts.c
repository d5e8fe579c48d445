/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts: neither the old nor the new calls work, and the mount table is restricted. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "judge.h"

/* Newer than the headers of Debian 12. */
enum { NR_statmount = 457, NR_listmount = 458, NR_open_tree_attr = 467 };

static const struct call calls[] = {
	{ "mount", SYS_mount, { 0, 0, 0, 0, 0 } },
	{ "mount-bind", SYS_mount, { 0, 0, 0, MS_BIND, 0 } },
	{ "mount-remount", SYS_mount, { 0, 0, 0, MS_REMOUNT, 0 } },
	{ "mount-propagation", SYS_mount, { 0, 0, 0, MS_SHARED | MS_REC, 0 } },
	{ "umount", SYS_umount2, { 0, 0 } },
	{ "umount-detach", SYS_umount2, { 0, MNT_DETACH } },
	{ "pivot_root", SYS_pivot_root, { 0, 0 } },
	{ "fsopen", SYS_fsopen, { 0, 0 } },
	{ "fsconfig", SYS_fsconfig, { -1, 0, 0, 0, 0 } },
	{ "fsmount", SYS_fsmount, { -1, 0, 0 } },
	{ "fspick", SYS_fspick, { -1, 0, 0 } },
	{ "open_tree", SYS_open_tree, { -1, 0, 1 } },
	{ "open_tree_attr", NR_open_tree_attr, { -1, 0, 1, 0, 0 } },
	{ "move_mount", SYS_move_mount, { -1, 0, -1, 0, 0 } },
	{ "mount_setattr", SYS_mount_setattr, { -1, 0, 0, 0, 0 } },
	{ "statmount", NR_statmount, { 0, 0, 0, 0 } },
	{ "listmount", NR_listmount, { 0, 0, 0, 0 } },
};

/* Every call whose name begins with the argument. */
static int refused(const struct check *c)
{
	size_t len = strlen(c->arg), first = LEN(calls), count = 0;

	for (size_t i = 0; i < LEN(calls); i++) {
		bool mine = strncmp(calls[i].name, c->arg, len) == 0 &&
			    (calls[i].name[len] == '\0' || calls[i].name[len] == '-');

		if (mine && first == LEN(calls))
			first = i;
		count += mine;
	}
	return count ? judge_all(calls + first, count) : trouble("no call %s", c->arg);
}

/* The kernel refuses too: with permission to mount, an unknown file system type is ENODEV. */
static int kernel_refuses(const struct check *c)
{
	(void)c;
	if (mount("none", "/tmp", "escape-nofs", 0, NULL) == 0 || errno != EPERM)
		return broken("mount answers %s", strerror(errno));
	if (umount2("/escape-no-such-directory", MNT_DETACH) == 0 || errno != EPERM)
		return broken("umount answers %s", strerror(errno));
	return held();
}

static bool is_below(const char *point, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(point, dir, len) == 0 && (!point[len] || point[len] == '/');
}

static int with_option(const struct mount *m, void *arg)
{
	const struct check *c = arg;

	/* devices are in /dev, and bound from there over masked files */
	if (strcmp(c->arg, "nodev") == 0 &&
	    (is_below(m->point, "/dev") || is_below(m->point, "/proc")))
		return 0;
	if (!has_option(m->options, c->arg))
		return broken("%s (%s) is mounted without %s", m->point, m->type, c->arg);
	return 0;
}

static int all_with_option(const struct check *c)
{
	return each_mount(with_option, (void *)(size_t)c);
}

static int is_tied(const struct mount *m, void *arg)
{
	(void)arg;
	if (strstr(m->fields, "shared:") || strstr(m->fields, "master:"))
		return broken("%s takes part in %s", m->point, m->fields);
	return 0;
}

static int untied(const struct check *c)
{
	(void)c;
	return each_mount(is_tied, NULL);
}

/* Without root no device can be created: the host's harmless ones are bound one by one. */
static bool is_bound_device(const struct mount *m)
{
	static const char *const roots[] = { "/null",	"/zero",    "/full",
					     "/random", "/urandom", "/tty" };

	for (size_t i = 0; i < LEN(roots); i++)
		if (strcmp(m->type, "devtmpfs") == 0 && strcmp(m->root, roots[i]) == 0)
			return is_rootless();
	return false;
}

/* Types that a sandbox does not need; the root of the host's own file system. */
static int is_foreign(const struct mount *m, void *arg)
{
	static const char *const types[] = { "devtmpfs", "cgroup",     "cgroup2",     "debugfs",
					     "tracefs",	 "securityfs", "bpf",	      "pstore",
					     "configfs", "efivarfs",   "binfmt_misc", "fusectl",
					     "autofs",	 "rpc_pipefs" };

	(void)arg;
	if (is_bound_device(m))
		return 0;
	for (size_t i = 0; i < LEN(types); i++)
		if (strcmp(m->type, types[i]) == 0)
			return broken("%s is mounted at %s", m->type, m->point);
	if (strncmp(m->source, "/dev/", 5) == 0 && strcmp(m->root, "/") == 0)
		return broken("all of %s is mounted at %s", m->source, m->point);
	return 0;
}

static int only_ours(const struct check *c)
{
	(void)c;
	return each_mount(is_foreign, NULL);
}

/* Neither the root of a bind nor an option names a directory of lodge, except for directories that
 * the caller shares. */
static int names_host(const struct mount *m, void *arg)
{
	const char *home = fact("LODGE_HOME"), *canary = fact("CANARY_DIR");
	const char *const hay[] = { m->root, m->source, m->super, m->point };

	(void)arg;
	if (is_below(m->point, "/probe"))
		return 0;
	for (size_t i = 0; i < LEN(hay); i++)
		if ((home && strstr(hay[i], home)) || (canary && strstr(hay[i], canary)))
			return broken("%s shows a path of the host: %s", m->point, hay[i]);
	for (const char *p = m->super; (p = strstr(p, "dir=")); p++)
		if (p[4] == '/')
			return broken("%s shows a path of the host: %s", m->point, m->super);
	return 0;
}

static int no_host_paths(const struct check *c)
{
	(void)c;
	if (!fact("LODGE_HOME"))
		return unjudged("the runner gave no facts about the host");
	return each_mount(names_host, NULL);
}

/* There are few writable mounts, and each is a file system of the sandbox. */
static int is_shared_writable(const struct mount *m, void *arg)
{
	static const char *const own[] = {
		"overlay", "tmpfs", "devpts", "mqueue", "proc", "btrfs"
	};

	(void)arg;
	if (has_option(m->options, "ro") || is_bound_device(m))
		return 0;
	for (size_t i = 0; i < LEN(own); i++)
		if (strcmp(m->type, own[i]) == 0)
			return 0;
	return broken("%s (%s) is writable", m->point, m->type);
}

static int writable_own(const struct check *c)
{
	(void)c;
	return each_mount(is_shared_writable, NULL);
}

#define CALL(name)                                                                                 \
	{                                                                                          \
		"mounts-" name, name " is refused by the filter", refused, BOTH, "seccomp",        \
			.arg = name                                                                \
	}

const struct check checks_mounts[] = {
	CALL("mount"),
	CALL("umount"),
	CALL("pivot_root"),
	CALL("fsopen"),
	CALL("fsconfig"),
	CALL("fsmount"),
	CALL("fspick"),
	CALL("open_tree"),
	CALL("open_tree_attr"),
	CALL("move_mount"),
	CALL("mount_setattr"),
	CALL("statmount"),
	CALL("listmount"),
	{ "mounts-kernel", "the kernel would refuse mount and umount too", kernel_refuses, BOTH,
	  "seccomp,caps" },
	{ "mounts-nosuid", "every mount is nosuid", all_with_option, USER, "nosuid",
	  .arg = "nosuid" },
	{ "mounts-nodev", "every mount but /dev is nodev", all_with_option, BOTH, "mountns",
	  .arg = "nodev" },
	{ "mounts-untied", "no mount is tied to one of the host", untied, BOTH, "mountns" },
	{ "mounts-only-ours", "nothing of the host's mounts is left", only_ours, BOTH, "mountns" },
	{ "mounts-no-host-paths", "the mount table shows no path of lodge", no_host_paths, BOTH,
	  "mountns" },
	{ "mounts-writable-own", "only file systems of our own are writable", writable_own, BOTH,
	  "mountns" },
	{ 0 },
};
