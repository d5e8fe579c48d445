/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one process, and per-user limits of the kernel. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	int resource;
	rlim_t max;
} bounds[] = {
	{ "nofile", RLIMIT_NOFILE, 1024 },
	{ "sigpending", RLIMIT_SIGPENDING, 16384 },
	{ "memlock", RLIMIT_MEMLOCK, 1 << 20 },
	{ "memlock", RLIMIT_MSGQUEUE, 1 << 20 },
};

static int bounded(const struct check *c)
{
	struct rlimit rl;

	for (size_t i = 0; i < LEN(bounds); i++) {
		if (strcmp(bounds[i].name, c->arg) != 0)
			continue;
		if (getrlimit((__rlimit_resource_t)bounds[i].resource, &rl) < 0)
			return trouble("getrlimit: %s", strerror(errno));
		if (rl.rlim_max > bounds[i].max)
			return broken("the hard limit is %llu", (unsigned long long)rl.rlim_max);
	}
	return held();
}

static int not_raised(const struct check *c)
{
	(void)c;
	for (int i = 0; i < 16; i++) {
		struct rlimit rl, now;

		if (getrlimit((__rlimit_resource_t)i, &rl) < 0 || rl.rlim_max == RLIM_INFINITY)
			continue;
		rl.rlim_max++;
		/* the filter reports success for RLIMIT_CORE, without effect */
		if (setrlimit((__rlimit_resource_t)i, &rl) == 0 &&
		    getrlimit((__rlimit_resource_t)i, &now) == 0 && now.rlim_max == rl.rlim_max)
			return broken("hard limit %d could be raised", i);
	}
	return held();
}

static int open_all(void *arg)
{
	int n = 0;

	(void)arg;
	/* 4,096 shows the lack of a limit as well as a million would */
	while (n < 4096 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		n++;
	return n < 4096 && errno == EMFILE ? HELD : BROKEN;
}

static int descriptors(const struct check *c)
{
	struct rlimit rl;
	int fd;

	(void)c;
	/* use as much as is allowed */
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	if (in_child(open_all, NULL) != HELD)
		return broken("4096 files can be open in one process");
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? broken("no file can be opened afterwards") : held();
}

static int inotify_all(void *arg)
{
	int n = 0;

	(void)arg;
	while (n < 300 && inotify_init1(IN_CLOEXEC) >= 0)
		n++;
	return n < 300 ? HELD : BROKEN;
}

static int inotify(const struct check *c)
{
	char text[64];

	(void)c;
	if (read_text("/proc/sys/user/max_inotify_instances", text, sizeof(text)) <= 0)
		return unjudged("this kernel has no per-namespace bound");
	/* the host's own limit is per user and shared with others of that user */
	if (strtol(text, NULL, 10) > 128)
		return broken("max_inotify_instances is %s", text);
	if (read_text("/proc/sys/user/max_inotify_watches", text, sizeof(text)) > 0 &&
	    strtol(text, NULL, 10) > 65536)
		return broken("max_inotify_watches is %s", text);
	if (in_child(inotify_all, NULL) != HELD)
		return broken("300 inotify instances were made");
	return inotify_init1(IN_CLOEXEC) < 0 ? broken("none can be made afterwards") : held();
}

static int pty_all(void *arg)
{
	int n = 0;

	(void)arg;
	while (n < 400 && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		n++;
	return n < 400 ? HELD : BROKEN;
}

static int ptys(const struct check *c)
{
	(void)c;
	if (in_child(pty_all, NULL) != HELD)
		return broken("400 terminals were made");
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0
		       ? broken("no terminal can be made afterwards")
		       : held();
}

/* Limited for the whole sandbox, not per process: several processes add up. */
static int signals_queued(void *arg)
{
	union sigval v = { 0 };
	sigset_t set;
	int n = 0;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (n < 40000 && sigqueue(getpid(), SIGRTMIN, v) == 0)
		n++;
	return n < 40000 ? HELD : BROKEN;
}

static int signals(const struct check *c)
{
	(void)c;
	return in_child(signals_queued, NULL) == HELD ? held()
						      : broken("40000 signals were left pending");
}

static int realtime(void *arg)
{
	struct sched_param p = { .sched_priority = 1 };

	(void)arg;
	if (sched_setscheduler(0, SCHED_RR, &p) == 0 || sched_setscheduler(0, SCHED_FIFO, &p) == 0)
		return BROKEN;
	return HELD;
}

static int no_realtime(const struct check *c)
{
	(void)c;
	return in_child(realtime, NULL) == HELD ? held() : broken("realtime scheduling was given");
}

static int nice_less(void *arg)
{
	(void)arg;
	return setpriority(PRIO_PROCESS, 0, -5) == 0 ? BROKEN : HELD;
}

static int no_nice(const struct check *c)
{
	(void)c;
	return in_child(nice_less, NULL) == HELD ? held() : broken("a negative nice was given");
}

static int write_score(void *arg)
{
	const char *path = arg;
	/* the older file has a scale of its own, on which 0 is less than any score above 58 */
	const char *less = strcmp(path, "/proc/self/oom_adj") == 0 ? "0" : "499";
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, less, strlen(less)) > 0 ? BROKEN : HELD;
}

static int oom_score(const struct check *c)
{
	static char now[] = "/proc/self/oom_score_adj", older[] = "/proc/self/oom_adj";
	char text[32];

	(void)c;
	if (read_text(now, text, sizeof(text)) <= 0)
		return trouble("%s cannot be read", now);
	if (strtol(text, NULL, 10) < 500)
		return broken("oom_score_adj is %s", text);
	if (is_rootless() || fact_number("SYS_RESOURCE") != 1)
		return unjudged("the host has no CAP_SYS_RESOURCE to set the minimum with");
	if (in_child(write_score, now) != HELD || in_child(write_score, older) != HELD)
		return broken("oom_score_adj can be lowered");
	return held();
}

static bool core_limit_is_one(void)
{
	struct rlimit rl;

	return getrlimit(RLIMIT_CORE, &rl) == 0 && rl.rlim_cur == 1 && rl.rlim_max == 1;
}

/* In every way there is, whatever they return. */
static void set_core_limit(rlim_t max)
{
	struct rlimit rl = { max, max }, old;

	setrlimit(RLIMIT_CORE, &rl);
	syscall(SYS_setrlimit, RLIMIT_CORE, &rl);
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, &rl, &old);
	syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &rl, NULL);
}

static int change_core_limit(void *arg)
{
	(void)arg;
	set_core_limit(RLIM_INFINITY);
	set_core_limit(0);
	return core_limit_is_one() ? HELD : BROKEN;
}

/* 1 is the only limit with which the kernel starts no helper for a crash. */
static int core_limit(const struct check *c)
{
	struct rlimit rl;

	(void)c;
	if (getrlimit(RLIMIT_CORE, &rl) < 0)
		return trouble("getrlimit: %s", strerror(errno));
	if (rl.rlim_max == 0 && fact_number("SYS_RESOURCE") != 1)
		return unjudged("the host's own limit is 0, and cannot be raised");
	if (!core_limit_is_one())
		return broken("the limit of cores is %llu, %llu", (unsigned long long)rl.rlim_cur,
			      (unsigned long long)rl.rlim_max);
	return in_child(change_core_limit, NULL) == HELD
		       ? held()
		       : broken("the limit of cores can be changed");
}

/* Crashes in an empty directory after it set the limit; whether a core was dumped, or -1. */
static int dumps_core(rlim_t limit)
{
	char dir[64], path[128];
	int status;
	pid_t pid;

	snprintf(dir, sizeof(dir), "/tmp/escape-core.%d", (int)getpid());
	if (mkdir(dir, 0700) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		set_core_limit(limit);
		if (chdir(dir) == 0)
			abort();
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
		return -1;
	snprintf(path, sizeof(path), "%s/core", dir);
	unlink(path);
	rmdir(dir);
	return WCOREDUMP(status);
}

static int no_core(const struct check *c)
{
	static const rlim_t limits[] = { RLIM_INFINITY, 1, 0 };

	(void)c;
	for (size_t i = 0; i < LEN(limits); i++) {
		int dumped = dumps_core(limits[i]);

		if (dumped < 0)
			return trouble("crash: %s", strerror(errno));
		if (dumped)
			return broken("a core was dumped with the limit %lld",
				      (long long)limits[i]);
	}
	return held();
}

#define RLIMIT(name)                                                                               \
	{                                                                                          \
		"limits-" name, "the hard limit of " name " is small", bounded, BOTH, "rlimits",   \
			.arg = name                                                                \
	}

const struct check checks_limits[] = {
	{ "limits-core", "the limit of cores is 1 and stays 1", core_limit, BOTH, "rlimits" },
	{ "limits-core-stays", "a guest cannot change the limit of cores", core_limit, BOTH,
	  "seccomp" },
	{ "limits-nofile", "the hard limit of open files is as asked for", bounded, BOTH,
	  .options = "", .weak_options = "--open-files 8192", .arg = "nofile" },
	RLIMIT("sigpending"),
	RLIMIT("memlock"),
	{ "limits-not-raised", "no hard limit can be raised", not_raised, BOTH,
	  .nofail = "needs CAP_SYS_RESOURCE of the host, which no sandbox is ever given" },
	{ "limits-descriptors", "open files end with EMFILE and nothing worse", descriptors, BOTH,
	  .options = "", .weak_options = "--open-files 8192" },
	{ "limits-inotify", "inotify has a bound of the sandbox's own", inotify, BOTH, "usermax" },
	{ "limits-ptys", "terminals run out and come back", ptys, BOTH, "devfull" },
	{ "limits-signals", "pending signals run out", signals, BOTH, "rlimits" },
	{ "limits-realtime", "realtime scheduling is refused", no_realtime, BOTH,
	  "userns,caps,cgroup" },
	{ "limits-nice", "a negative nice is refused", no_nice, BOTH, "userns,caps,cgroup" },
	{ "limits-oom-score", "the OOM killer's score cannot be lowered", oom_score, BOTH,
	  "oomscore" },
	{ "limits-core-dump", "a crash leaves no core and calls no helper", no_core, BOTH,
	  "rlimits,seccomp" },
	{ 0 },
};
