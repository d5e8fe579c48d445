/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/host_template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"

enum { USER_ID = 1000, COPY_MAX = 8 << 20, ENTRIES_MAX = 20000, FORMAT = 3 };

static const struct {
	const char *path;
	mode_t mode;
	bool is_users;
} dirs[] = {
	{ "usr", 0755, false },	      { "etc", 0755, false },	   { "home", 0755, false },
	{ "home/user", 0755, true },  { "root", 0700, false },	   { "tmp", 01777, false },
	{ "var", 0755, false },	      { "var/tmp", 01777, false }, { "var/lib", 0755, false },
	{ "var/cache", 0755, false }, { "var/log", 0755, false },  { "run", 0755, false },
	{ "run/lock", 01777, false }, { "proc", 0555, false },	   { "dev", 0755, false },
	{ "sys", 0555, false },	      { "opt", 0755, false },	   { "srv", 0755, false },
	{ "mnt", 0755, false },	      { "media", 0755, false },	   { "workspace", 0755, true },
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
			"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			"user:x:1000:1000:user:/home/user:/bin/bash\n"
			"lodge:x:65530:65530:lodge:/:/usr/sbin/nologin\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nuser:x:1000:\n"
		       "lodge:x:65530:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost lodge\n::1 localhost\n" },
	{ "etc/hostname", "lodge\n" },
	{ "etc/resolv.conf", "" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "services: files\nprotocols: files\n" },
};

/* World-readable parts of the host's /etc that programs in /usr need. */
static const char *const etc_copies[] = {
	"alternatives", "bash.bashrc", "ca-certificates", "debian_version",
	"fonts",	"inputrc",     "java-17-openjdk", "java-21-openjdk",
	"ld.so.cache",	"ld.so.conf",  "ld.so.conf.d",	  "localtime",
	"magic",	"magic.mime",  "mime.types",	  "os-release",
	"perl",		"profile",     "profile.d",	  "protocols",
	"python3",	"python3.11",  "python3.13",	  "services",
	"ssl",		"terminfo",    "timezone",
};

static const char *const top_level[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

struct copy {
	int to;
	unsigned *left;
};

static int copy_entry(int dir, const char *name, void *arg);

static int copy_file(int from, const char *name, int to, mode_t mode)
{
	auto_close int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	auto_close int out = -1;

	if (in < 0)
		return errno == EACCES ? 0 : -errno;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0755);
	if (out < 0)
		return -errno;
	while (1) {
		ssize_t n = sendfile(out, in, NULL, COPY_MAX);

		if (n <= 0)
			return n < 0 ? -errno : 0;
	}
}

static int copy_link(int from, const char *name, int to)
{
	char target[4096];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int copy_dir(int from, const char *name, struct copy *c)
{
	struct copy below = { -1, c->left };
	int r;

	if (mkdirat(c->to, name, 0755) < 0)
		return -errno;
	below.to = openat(c->to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (below.to < 0)
		return -errno;
	r = file_each_at(from, name, copy_entry, &below);
	close(below.to);
	return r == -EACCES ? 0 : r;
}

/* Skips files that are not world-readable: they must not leave the host. */
static int copy_entry(int dir, const char *name, void *arg)
{
	struct copy *c = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if ((*c->left)-- == 0)
		return -E2BIG;
	if (S_ISLNK(st.st_mode))
		return copy_link(dir, name, c->to);
	if (!(st.st_mode & S_IROTH))
		return 0;
	if (S_ISDIR(st.st_mode))
		return (st.st_mode & S_IXOTH) ? copy_dir(dir, name, c) : 0;
	if (!S_ISREG(st.st_mode) || st.st_size > COPY_MAX)
		return 0;
	return copy_file(dir, name, c->to, st.st_mode);
}

static int make_dirs(int tree, bool rootless)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (mkdirat(tree, dirs[i].path, dirs[i].mode) < 0 ||
		    fchmodat(tree, dirs[i].path, dirs[i].mode, 0) < 0)
			return -errno;
		if (dirs[i].is_users && !rootless &&
		    fchownat(tree, dirs[i].path, USER_ID, USER_ID, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

static int make_files(int tree)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_close int fd =
			openat(tree, files[i].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		size_t len = strlen(files[i].text);

		if (fd < 0 || write(fd, files[i].text, len) != (ssize_t)len)
			return -errno;
	}
	return 0;
}

static int make_top_level(int tree)
{
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (root < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(top_level); i++) {
		int r = 0;

		if (fstatat(root, top_level[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			r = copy_link(root, top_level[i], tree);
		else if (mkdirat(tree, top_level[i], 0755) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_etc(int tree)
{
	auto_close int from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int to = openat(tree, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned left = ENTRIES_MAX;
	struct copy c = { to, &left };

	if (from < 0 || to < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(etc_copies); i++) {
		int r = copy_entry(from, etc_copies[i], &c);

		if (r < 0)
			return r;
	}
	return 0;
}

static int build_tree(int home, const char *name, bool rootless)
{
	mode_t mask = umask(0);
	int tree = -1, r = mkdirat(home, name, 0755) < 0 ? -errno : 0;

	if (r == 0) {
		tree = openat(home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		r = tree < 0 ? -errno : make_dirs(tree, rootless);
	}
	if (r == 0)
		r = make_files(tree);
	if (r == 0)
		r = make_top_level(tree);
	if (r == 0)
		r = make_etc(tree);
	if (tree >= 0)
		close(tree);
	umask(mask);
	return r;
}

/* Changes with the host's libraries, alternatives and certificates, and with FORMAT. */
static uint64_t hash_host(bool rootless)
{
	static const char *const watched[] = { "/etc/ld.so.cache",
					       "/etc/alternatives",
					       "/etc/ssl/certs",
					       "/etc/localtime",
					       "/etc/os-release",
					       "/bin",
					       "/lib64" };
	uint64_t h = 1469598103934665603ull + FORMAT + rootless;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		uint64_t v = 0;

		if (lstat(watched[i], &st) == 0)
			v = (uint64_t)st.st_mtim.tv_sec * 1000003u ^ (uint64_t)st.st_mtim.tv_nsec ^
			    (uint64_t)st.st_ino;
		h = (h ^ v) * 1099511628211ull;
	}
	return h;
}

int host_template_open(int home, bool rootless, struct err *err)
{
	char name[40], temp[64];
	int fd, r;

	snprintf(name, sizeof(name), "host-%016llx", (unsigned long long)hash_host(rootless));
	fd = openat(home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	snprintf(temp, sizeof(temp), ".%s.%d", name, getpid());
	r = file_remove_tree_at(home, temp); /* left by an attempt that could not remove it */
	if (r == 0)
		r = build_tree(home, temp, rootless);
	if (r == 0 && renameat(home, temp, home, name) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = -errno;
	(void)file_remove_tree_at(home, temp);
	if (r < 0)
		return err_sys(err, -r, "build the host template");
	fd = openat(home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, errno, "%s", name) : fd;
}

const char *const *host_template_binds(void)
{
	static const char *binds[ARRAY_LEN(top_level) + 2];
	static char paths[ARRAY_LEN(top_level)][16];
	size_t n = 0;
	struct stat st;

	if (binds[0])
		return binds;
	for (size_t i = 0; i < ARRAY_LEN(top_level); i++) {
		snprintf(paths[i], sizeof(paths[i]), "/%s", top_level[i]);
		if (lstat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			binds[1 + n++] = paths[i];
	}
	binds[0] = "/usr";
	return binds;
}
