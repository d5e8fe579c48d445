/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities, ids, and ways to gain more of them. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The list of SECURITY.md for the root class. */
#define BIT(cap) (1ull << (cap))
static const unsigned long long root_list =
	BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) |
	BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT);

static int cap_set(const struct check *c)
{
	long long have = status_number(c->arg, 16);
	unsigned long long extra;

	if (have < 0)
		return trouble("no %s in /proc/self/status", c->arg);
	extra = (unsigned long long)have & ~(is_root_class() ? root_list : 0);
	return extra ? broken("%s has %llx", c->arg, extra) : held();
}

static int no_new_privs(const struct check *c)
{
	(void)c;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? held() : broken("no_new_privs is 0");
}

/* No group of the host: such groups appear as the overflow id, or as group 0. */
static bool has_foreign_group(void)
{
	gid_t groups[256];
	int n = getgroups(LEN(groups), groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == 65534 || groups[i] == 0)
			return true;
	return false;
}

static int change_id(void *arg)
{
	gid_t zero = 0;

	(void)arg;
	if (setuid(0) == 0 || setresuid(0, 0, 0) == 0 || setreuid(0, 0) == 0)
		return 1;
	if (setgid(0) == 0 || setresgid(0, 0, 0) == 0)
		return 2;
	if (syscall(SYS_setgroups, 1, &zero) == 0)
		return 3;
	if (setuid(65530) == 0 || setresgid(65530, 65530, 65530) == 0)
		return 4;
	return 0;
}

static int ids_fixed(const struct check *c)
{
	static const char *const what[] = { "", "user 0", "group 0", "groups", "lodge-init's id" };
	int ret = in_child(change_id, NULL);

	(void)c;
	if (!getuid() || !geteuid() || !getgid() || !getegid())
		return broken("the command runs as user or group 0");
	if (has_foreign_group())
		return broken("the command is in a group from outside");
	return ret == 0 ? held() : broken("could take %s", ret < 5 ? what[ret] : "?");
}

static int raise_caps(void *arg)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { ~0u, ~0u, ~0u }, { 0x1ff, 0x1ff, 0x1ff } };

	(void)arg;
	for (unsigned cap = 0; cap < 41; cap++) {
		unsigned long long list = is_root_class() ? root_list : 0;
		struct __user_cap_data_struct one[2] = { { 0 }, { 0 } };

		one[cap / 32].effective = one[cap / 32].permitted = 1u << (cap % 32);
		if (!(list >> cap & 1) && syscall(SYS_capset, &head, one) == 0)
			return 1;
		if (!(list >> cap & 1) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
			return 2;
		if (!(list >> cap & 1) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 3;
	}
	return syscall(SYS_capset, &head, data) == 0 ? 1 : 0;
}

static int caps_fixed(const struct check *c)
{
	static const char *const what[] = { "", "capset raised one", "ambient raised one",
					    "the bounding set has one" };
	int ret = in_child(raise_caps, NULL);

	(void)c;
	return ret == 0 ? held() : broken("%s", ret < 4 ? what[ret] : "?");
}

static int securebits(const struct check *c)
{
	(void)c;
	/* 0xff: all bits, not a value that occurs by accident */
	return prctl(PR_SET_SECUREBITS, 0xff, 0, 0, 0) == 0 ? broken("securebits were set")
							    : held();
}

/* Runs a set-user-id copy of this program, which prints its ids. */
static int run_setuid(const struct check *c)
{
	char out[256] = "", want[64], command[128];
	FILE *f;

	if (access(c->arg, X_OK) < 0)
		return unjudged("cannot open %s: %s", c->arg, strerror(errno));
	snprintf(command, sizeof(command), "%s --ids", c->arg);
	f = popen(command, "re");
	if (!f || !fgets(out, sizeof(out), f))
		out[0] = '\0';
	if (f)
		pclose(f);
	snprintf(want, sizeof(want), "uid %d euid %d gid %d egid %d ", (int)getuid(), (int)getuid(),
		 (int)getgid(), (int)getgid());
	if (!out[0])
		return trouble("%s said nothing", c->arg);
	return strncmp(out, want, strlen(want)) == 0 ? held() : broken("its ids: %s", out);
}

static bool got_bits(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID));
}

/* Tries each call that can set the bits on a file; returns the name of the one that did, or NULL.
 */
static const char *set_bits(const char *path)
{
	int fd;

	chmod(path, 04755);
	if (got_bits(path))
		return "chmod";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fchmod(fd, 04755);
	close(fd);
	if (got_bits(path))
		return "fchmod";
	fchmodat(AT_FDCWD, path, 02755, 0);
	if (got_bits(path))
		return "fchmodat";
	syscall(452 /* fchmodat2 */, AT_FDCWD, path, 06755, 0);
	if (got_bits(path))
		return "fchmodat2";
	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 06755);
	close(fd);
	if (got_bits(path))
		return "open";
	unlink(path);
	mknod(path, S_IFREG | 06755, 0);
	return got_bits(path) ? "mknod" : NULL;
}

static int set_bits_openat2(const char *path)
{
	struct {
		unsigned long long flags, mode, resolve;
	} how = { O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 06755, 0 };
	int fd;

	unlink(path);
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd >= 0)
		close(fd);
	return got_bits(path);
}

static int setuid_bits(const struct check *c)
{
	char path[64];
	const char *how;
	int fd;

	(void)c;
	snprintf(path, sizeof(path), "/tmp/escape-setuid.%d", (int)getpid());
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
	if (fd < 0)
		return trouble("%s: %s", path, strerror(errno));
	close(fd);
	umask(0);
	how = set_bits(path);
	if (!how && set_bits_openat2(path))
		how = "openat2";
	unlink(path);
	return how ? broken("%s put a set-id bit on a file", how) : held();
}

#define CAP_SET(name, line)                                                                        \
	{                                                                                          \
		"caps-" name, "the " name " set is empty (root class: the short list)", cap_set,   \
			BOTH, "caps", .arg = line                                                  \
	}

const struct check checks_caps[] = {
	CAP_SET("effective", "CapEff"),
	CAP_SET("permitted", "CapPrm"),
	CAP_SET("inheritable", "CapInh"),
	CAP_SET("bounding", "CapBnd"),
	CAP_SET("ambient", "CapAmb"),
	{ "caps-no-new-privs", "no_new_privs is set", no_new_privs, USER, "nnp" },
	{ "caps-ids-fixed", "ids and groups are not 0 and cannot be changed", ids_fixed, USER,
	  "caps" },
	{ "caps-fixed", "no capability can be raised in any way", caps_fixed, BOTH, "caps" },
	{ "caps-securebits", "securebits cannot be set", securebits, BOTH, "caps,seccomp" },
	{ "caps-setuid-file", "a set-user-id file of the host's root gains nothing", run_setuid,
	  BOTH, "nosuid,nnp,userns,cgroup", .arg = "/probe/setuid-probe" },
	{ "caps-setuid-bits", "no set-id bit can be put on a file", setuid_bits, USER,
	  "setuidbits" },
	{ 0 },
};
