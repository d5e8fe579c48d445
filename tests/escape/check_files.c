/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host, and ways out of the root directory. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "judge.h"

#define UPWARD "../../../../../../../../../../../../.."

/* True if this path is the runner's canary, which contains a secret. */
static bool is_canary(int dirfd, const char *path)
{
	const char *token = fact("TOKEN");
	char buf[128] = "";
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, buf, sizeof(buf) - 1) < 0)
		buf[0] = '\0';
	close(fd);
	return token && strstr(buf, token);
}

static int no_facts(void)
{
	return unjudged("the runner gave no facts about the host");
}

static int canary(const struct check *c)
{
	const char *path = fact(c->arg);

	if (!path)
		return no_facts();
	return is_canary(AT_FDCWD, path) ? broken("%s of the host was read", path) : held();
}

/* Whether the object differs from that on the host. Nothing is opened. */
static int not_the_hosts(const struct check *c)
{
	char key[PATH_MAX], id[64];
	const char *want;

	snprintf(key, sizeof(key), "ID:%s", c->arg);
	want = fact(key);
	if (!want)
		return unjudged("the host has no %s", c->arg);
	if (!file_id(c->arg, id, sizeof(id)))
		return held();
	return strcmp(id, want) == 0 ? broken("%s is the host's own", c->arg) : held();
}

static int hidden(const struct check *c)
{
	const char *path = fact(c->arg);
	struct stat st;

	if (!path)
		return no_facts();
	return lstat(path, &st) == 0 ? broken("%s of the host is visible", path) : held();
}

static int upward(const struct check *c)
{
	const char *path = fact("CANARY");
	char up[PATH_MAX];
	struct stat root, above;

	(void)c;
	if (!path)
		return no_facts();
	snprintf(up, sizeof(up), "/" UPWARD "%s", path);
	if (is_canary(AT_FDCWD, up))
		return broken("%s was read", up);
	if (stat("/", &root) < 0 || stat("/" UPWARD, &above) < 0)
		return trouble("stat: %s", strerror(errno));
	if (root.st_ino != above.st_ino || root.st_dev != above.st_dev)
		return broken("something lies above the root directory");
	return held();
}

static int upward_openat2(const struct check *c)
{
	const char *path = fact("CANARY");
	static const unsigned long long resolve[] = { 0, RESOLVE_IN_ROOT, RESOLVE_BENEATH };
	char up[PATH_MAX], buf[128] = "";

	(void)c;
	if (!path)
		return no_facts();
	snprintf(up, sizeof(up), UPWARD "%s", path);
	for (size_t i = 0; i < LEN(resolve); i++) {
		struct open_how how = { .flags = O_RDONLY, .resolve = resolve[i] };
		int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		int fd = (int)syscall(SYS_openat2, root, up, &how, sizeof(how));

		close(root);
		if (fd >= 0 && read(fd, buf, sizeof(buf) - 1) >= 0 && fact("TOKEN") &&
		    strstr(buf, fact("TOKEN")))
			return broken("openat2 with resolve %llu read the canary", resolve[i]);
		if (fd >= 0)
			close(fd);
	}
	return held();
}

static int magic_links(const struct check *c)
{
	static const char *const links[] = { "/proc/self/root",
					     "/proc/self/cwd/" UPWARD,
					     "/proc/thread-self/root",
					     "/proc/self/task/self/root",
					     "/proc/1/root",
					     "/proc/1/cwd",
					     "/dev/fd/0/..",
					     "/dev/fd/1/..",
					     "/dev/fd/2/.." };
	const char *path = fact("CANARY");
	char full[PATH_MAX];

	(void)c;
	if (!path)
		return no_facts();
	for (size_t i = 0; i < LEN(links); i++) {
		snprintf(full, sizeof(full), "%s/" UPWARD "%s", links[i], path);
		if (is_canary(AT_FDCWD, full))
			return broken("the canary was read through %s", links[i]);
		snprintf(full, sizeof(full), "%s%s", links[i], path);
		if (is_canary(AT_FDCWD, full))
			return broken("the canary was read through %s", links[i]);
	}
	return held();
}

static int symlinks(const struct check *c)
{
	const char *path = fact("CANARY");
	char link[64], target[PATH_MAX];
	bool through = false;

	(void)c;
	if (!path)
		return no_facts();
	snprintf(link, sizeof(link), "/tmp/escape-link.%d", (int)getpid());
	for (int i = 0; i < 2 && !through; i++) {
		snprintf(target, sizeof(target), "%s%s", i ? UPWARD : "", path);
		if (symlink(target, link) < 0)
			return trouble("symlink %s: %s", link, strerror(errno));
		through = is_canary(AT_FDCWD, link);
		unlink(link);
	}
	return through ? broken("a symbolic link led to the canary") : held();
}

static bool links_foreign(const char *from, const char *dir)
{
	char name[PATH_MAX];
	struct stat st = { 0 };

	snprintf(name, sizeof(name), "%s/escape-hard.%d", dir, (int)getpid());
	if (linkat(AT_FDCWD, from, AT_FDCWD, name, 0) < 0)
		return false;
	stat(name, &st);
	unlink(name);
	return st.st_uid != getuid();
}

/* Links to foreign files: of the host, or shared with it (the programs below /usr). */
static int hard_links(const struct check *c)
{
	static const char *const shared[] = { "/usr/bin/env", "/probe/escape-probe" };
	static const char *const dirs[] = { "/tmp", "/dev/shm", "/var/tmp", "." };
	const char *path = fact("CANARY_RW"), *dir = fact("CANARY_DIR");

	(void)c;
	if (!path || !dir)
		return no_facts();
	if (links_foreign(path, dir))
		return broken("a file of the host's root was linked");
	for (size_t i = 0; i < LEN(shared); i++)
		for (size_t k = 0; k < LEN(dirs); k++)
			if (!is_root_class() && links_foreign(shared[i], dirs[k]))
				return broken("%s was linked into %s", shared[i], dirs[k]);
	return held();
}

static int chroot_classic(void *arg)
{
	const char *path = fact("CANARY");
	char dir[64];

	(void)arg;
	snprintf(dir, sizeof(dir), "/tmp/escape-root.%d", (int)getpid());
	if (mkdir(dir, 0700) < 0)
		return TROUBLE;
	if (chroot(dir) < 0) {
		rmdir(dir);
		return errno == EPERM ? HELD : TROUBLE;
	}
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return TROUBLE;
	rmdir(dir + 1);
	if (!is_root_class())
		return broken("chroot was allowed");
	if (chroot(".") < 0)
		return TROUBLE;
	return path && is_canary(AT_FDCWD, path) ? broken("chroot twice led to the canary") : HELD;
}

static int chroot_escape(const struct check *c)
{
	(void)c;
	return in_child(chroot_classic, NULL);
}

/* Climbs from the working directory until ".." stays in place, which must be the sandbox's "/". */
static int cwd_inside(const struct check *c)
{
	char cwd[PATH_MAX];
	const char *path = fact("CANARY");
	struct stat here, root;

	(void)c;
	if (syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0)
		return broken("the working directory has no name here: %s", strerror(errno));
	if (cwd[0] != '/')
		return broken("the working directory is %s", cwd);
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return trouble("chdir: %s", strerror(errno));
	if (stat(".", &here) < 0 || stat("/", &root) < 0)
		return trouble("stat: %s", strerror(errno));
	if (here.st_ino != root.st_ino || here.st_dev != root.st_dev)
		return broken("the working directory lies outside the root directory");
	if (path && is_canary(AT_FDCWD, path + 1))
		return broken("the canary was read from the top of the working directory");
	return held();
}

static int handles(const struct check *c)
{
	static const struct call calls[] = {
		{ "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 } },
		{ "name_to_handle_at", SYS_name_to_handle_at, { -1, 0, 0, 0, 0 } },
	};

	(void)c;
	return judge_all(calls, LEN(calls));
}

/* Programs shared with the host are on a read-only mount or below the sandbox's own overlay. */
static int shared_readonly(const struct check *c)
{
	static const char *const paths[] = { "/usr", "/usr/bin", "/usr/lib", "/bin/", "/lib/" };
	struct statvfs vfs;
	struct statfs fs;

	(void)c;
	for (size_t i = 0; i < LEN(paths); i++) {
		if (statvfs(paths[i], &vfs) < 0 || statfs(paths[i], &fs) < 0)
			continue;
		if (!(vfs.f_flag & ST_RDONLY) && fs.f_type != OVERLAYFS_SUPER_MAGIC)
			return broken("%s is on a writable mount", paths[i]);
	}
	return held();
}

static int probe_readonly(const struct check *c)
{
	struct statvfs vfs;

	(void)c;
	if (statvfs("/probe", &vfs) < 0)
		return broken("/probe: %s", strerror(errno));
	return vfs.f_flag & ST_RDONLY ? held() : broken("a --dir without :rw is writable");
}

/* A kernel elsewhere would trust a file capability or an overlay attribute on a file. */
static int marks(const struct check *c)
{
	static const unsigned char caps[20] = { 0x01, 0, 0, 0x02, 0xff, 0xff, 0xff, 0xff };
	char name[64];
	int fd, ret = 0;

	snprintf(name, sizeof(name), "/dev/shm/escape-mark.%d", (int)getpid());
	fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return trouble("%s: %s", name, strerror(errno));
	if (fsetxattr(fd, c->arg, caps, sizeof(caps), 0) == 0)
		ret = broken("%s was set on a file", c->arg);
	close(fd);
	unlink(name);
	return ret;
}

const struct check checks_files[] = {
	{ "files-canary", "a file of the host cannot be read", canary, BOTH, "mountns",
	  .arg = "CANARY" },
	{ "files-canary-tmp", "the host's /tmp cannot be read", canary, BOTH, "mountns",
	  .arg = "CANARY_TMP" },
	{ "files-canary-shm", "the host's /dev/shm cannot be read", canary, BOTH, "mountns",
	  .arg = "CANARY_SHM" },
	{ "files-shadow", "/etc/shadow is not the host's", not_the_hosts, BOTH, "mountns",
	  .arg = "/etc/shadow" },
	{ "files-root-home", "/root is not the host's", not_the_hosts, BOTH, "mountns",
	  .arg = "/root" },
	{ "files-var-lib", "/var/lib is not the host's", not_the_hosts, BOTH, "mountns",
	  .arg = "/var/lib" },
	{ "files-run", "/run is not the host's", not_the_hosts, BOTH, "mountns", .arg = "/run" },
	{ "files-lodge-home", "lodge's own directory cannot be seen", hidden, BOTH, "mountns",
	  .arg = "LODGE_HOME" },
	{ "files-upward", ".. above the root directory leads nowhere", upward, BOTH, "mountns" },
	{ "files-upward-openat2", "openat2 does not lead out either", upward_openat2, BOTH,
	  "mountns,seccomp" },
	{ "files-magic-links", "root, cwd and fd links below /proc do not lead out", magic_links,
	  BOTH, "mountns" },
	{ "files-symlinks", "a symbolic link does not lead out", symlinks, BOTH, "mountns" },
	{ "files-hard-links", "no hard link to a file of the host or shared with it", hard_links,
	  BOTH, "mountns" },
	{ "files-chroot", "chroot is refused, or leads nowhere in the root class", chroot_escape,
	  BOTH, "seccomp,caps" },
	{ "files-cwd", "the working directory is below the root directory", cwd_inside, BOTH,
	  "mountns" },
	{ "files-handles", "files cannot be opened by handle", handles, BOTH, "seccomp" },
	{ "files-shared-readonly", "what is shared with the host cannot be written",
	  shared_readonly, BOTH, "mountns" },
	{ "files-dir-readonly", "a directory given without :rw cannot be written", probe_readonly,
	  BOTH, .options = "", .weak_options = "PROBE_RW" },
	{ "files-file-caps", "no file capability can be set", marks, USER, "caps",
	  .arg = "security.capability" },
	{ "files-trusted-marks", "no trusted mark (as of an overlay) can be set", marks, BOTH,
	  "userns,caps,cgroup", .arg = "trusted.escape" },
	{ 0 },
};
