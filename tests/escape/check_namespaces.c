/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: all eight belong to the sandbox, and no others can be entered or created. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int own(const struct check *c)
{
	char path[64], link[64] = "", key[32];
	const char *host;

	snprintf(key, sizeof(key), "NS:%s", c->arg);
	host = fact(key);
	if (!host)
		return unjudged("the runner gave no %s namespace of the host", c->arg);
	snprintf(path, sizeof(path), "/proc/self/ns/%s", c->arg);
	if (readlink(path, link, sizeof(link) - 1) < 0)
		return trouble("%s: %s", path, strerror(errno));
	return strcmp(link, host) == 0 ? broken("%s is the host's", link) : held();
}

static const struct {
	const char *name;
	int flag;
} kinds[] = {
	{ "mnt", CLONE_NEWNS },	   { "cgroup", CLONE_NEWCGROUP },
	{ "uts", CLONE_NEWUTS },   { "ipc", CLONE_NEWIPC },
	{ "user", CLONE_NEWUSER }, { "pid", CLONE_NEWPID },
	{ "net", CLONE_NEWNET },   { "time", 0x80 },
};

/* In a child, so that a success ends with it. */
static int try_unshare(void *arg)
{
	return unshare(*(const int *)arg) == 0 ? 1 : 0;
}

static int no_unshare(const struct check *c)
{
	(void)c;
	for (size_t i = 0; i < LEN(kinds); i++) {
		int flag = kinds[i].flag, both = flag | CLONE_NEWUSER;

		if (in_child(try_unshare, &flag) != 0)
			return broken("a new %s namespace was made", kinds[i].name);
		if (in_child(try_unshare, &both) != 0)
			return broken("a new user and %s namespace was made", kinds[i].name);
	}
	return held();
}

static int no_clone(const struct check *c)
{
	(void)c;
	for (size_t i = 0; i < LEN(kinds) - 1; i++) {
		long pid = syscall(SYS_clone, kinds[i].flag | CLONE_NEWUSER | 17 /* SIGCHLD */, 0,
				   0, 0, 0);

		if (pid == 0)
			_exit(0);
		if (pid > 0)
			return broken("a child in new user and %s namespaces was made",
				      kinds[i].name);
	}
	return held();
}

static int no_setns(const struct check *c)
{
	char path[64];

	(void)c;
	for (size_t i = 0; i < LEN(kinds); i++) {
		int fd, ret;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		ret = fd < 0 ? -1 : setns(fd, 0);
		close(fd);
		if (ret == 0)
			return broken("setns into %s", path);
	}
	return held();
}

static int bounded(const struct check *c)
{
	char path[64], text[64], *save = NULL, list[256];

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", p);
		if (read_text(path, text, sizeof(text)) > 0 && strtol(text, NULL, 10) != 0)
			return broken("%s is %s", path, text);
	}
	return held();
}

#define OWN(kind, hook)                                                                            \
	{                                                                                          \
		"ns-" kind, "the " kind " namespace is not the host's", own, BOTH, hook,           \
			.arg = kind                                                                \
	}

const struct check checks_namespaces[] = {
	OWN("user", "userns,cgroup"),
	{ "ns-mnt", "the mnt namespace is not the host's", own, BOTH,
	  .nofail = "left out, it is the keeper's own: outside-mount-namespace shows that",
	  .arg = "mnt" },
	OWN("pid", "pidns"),
	OWN("net", "netns"),
	OWN("ipc", "ipcns"),
	OWN("uts", "utsns"),
	OWN("cgroup", "cgroupns"),
	OWN("time", "timens"),
	{ "ns-no-unshare", "unshare makes no namespace of any kind", no_unshare, BOTH,
	  "seccomp,usermax" },
	{ "ns-no-clone", "clone makes no namespace of any kind", no_clone, BOTH,
	  "seccomp,usermax" },
	{ "ns-no-setns", "setns enters nothing", no_setns, BOTH, "seccomp,userns,caps,cgroup" },
	{ "ns-user-bounded", "max_user_namespaces is 0", bounded, BOTH, "usermax", .arg = "user" },
	{ "ns-all-bounded", "so are all the other kinds", bounded, BOTH, "usermax",
	  .arg = "mnt pid net ipc uts cgroup time" },
	{ 0 },
};
