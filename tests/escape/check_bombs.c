/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustion. Each check has its own sandbox with small limits, and is bounded itself: even if
 * nothing limits it, it does not disturb the host. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PIDS = 64, /* --pids */
	PIDS_TRIED = 600,
	MEMORY_MB = 64, /* --memory */
	MEMORY_TRIED_MB = 300,
	DISK_TRIED_MB = 200, /* --disk is 16 */
	INODES = 2000, /* --inodes */
};
#define SMALL "--pids 64 --memory 64M"
#define DISK "--disk 16M --memory 256M"
#define DISK_WEAK "--disk 1G --memory 1G"

static int usable(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		return broken("nothing can be started afterwards: %s", strerror(errno));
	return held();
}

static int forks(const struct check *c)
{
	static pid_t pids[PIDS_TRIED];
	int n = 0, error = 0;

	(void)c;
	for (; n < PIDS_TRIED; n++) {
		pids[n] = fork();
		if (pids[n] == 0)
			for (;;)
				pause();
		if (pids[n] < 0)
			break;
	}
	error = errno;
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
	if (n >= PIDS)
		return broken("%d processes were started", n);
	if (error != EAGAIN)
		return broken("the fork over the limit said %s", strerror(error));
	return usable();
}

static void *sleeper(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static int make_threads(void *arg)
{
	pthread_attr_t attr;
	int n = 0;

	(void)arg;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (pthread_t t; n < PIDS_TRIED; n++)
		if (pthread_create(&t, &attr, sleeper, NULL) != 0)
			break;
	return n >= PIDS ? BROKEN : HELD;
}

static int threads(const struct check *c)
{
	(void)c;
	if (in_child(make_threads, NULL) != HELD)
		return broken("%d threads were started", PIDS);
	return usable();
}

/* Processes start processes, up to 1,024 if nothing limits them, until no more can be started. */
static int bomb(const struct check *c)
{
	int *started = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t group = fork();

	(void)c;
	if (group == 0) {
		setpgid(0, 0);
		alarm(120);
		for (int i = 0; i < 10; i++)
			if (fork() == 0)
				__atomic_add_fetch(started, 1, __ATOMIC_RELAXED);
		for (;;)
			pause();
	}
	setpgid(group, group);
	for (int i = 0, last = -1; i < 60 && *started < 2 * PIDS && *started != last; i++) {
		last = *started;
		usleep(1000000);
	}
	kill(-group, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	usleep(200000);
	if (*started >= 2 * PIDS)
		return broken("it grew to %d processes", *started);
	return usable();
}

static void touch(char *p, size_t size)
{
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
}

static int take_anonymous(void *arg)
{
	(void)arg;
	for (int i = 0; i < MEMORY_MB + MEMORY_TRIED_MB; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			return HELD;
		touch(p, 1 << 20);
	}
	return BROKEN;
}

/* Many files of 4 MB, so that no limit on file size interferes. HELD if a write is refused before
 * all is written. The files stay open, and need no name to use space. */
enum { PIECE_MB = 4 };

static int fill(int (*open_next)(const char *dir), const char *dir, int megabytes)
{
	static char block[1 << 20];

	for (int i = 0; i < megabytes / PIECE_MB; i++) {
		int fd = open_next(dir);

		if (fd < 0)
			return HELD;
		for (int k = 0; k < PIECE_MB; k++)
			/* a short write has no errno, but the next one has */
			if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) &&
			    write(fd, block, sizeof(block)) <= 0)
				return HELD;
	}
	return BROKEN;
}

static int open_memfd(const char *dir)
{
	(void)dir;
	return (int)syscall(SYS_memfd_create, "escape", 1);
}

static int open_nameless(const char *dir)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/escape-fill.%d", dir, (int)getpid());
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static int take_memfd(void *arg)
{
	(void)arg;
	return fill(open_memfd, "", MEMORY_MB + MEMORY_TRIED_MB);
}

static int take_tmpfs(void *arg)
{
	(void)arg;
	/* two walls: its own size, and the memory limit */
	return fill(open_nameless, "/dev/shm", 3 * MEMORY_MB);
}

static int take_sysv(void *arg)
{
	size_t size = (size_t)(MEMORY_MB + MEMORY_TRIED_MB) << 20;
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	(void)arg;
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL); /* removed with its last user */
	if (p == (char *)-1)
		return HELD;
	touch(p, size);
	return BROKEN;
}

static int take_pages(void *arg)
{
	/* one touched byte per 2 MB, so that the page tables grow */
	char *p = mmap(NULL, 1ull << 37, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)arg;
	if (p == MAP_FAILED)
		return HELD;
	madvise(p, 1ull << 37, MADV_NOHUGEPAGE);
	for (int i = 0; i < (MEMORY_MB + 100) * 128; i++)
		p[(size_t)i << 21] = 1;
	return BROKEN;
}

/* Fills both directions; returns how much fitted. */
static size_t stuff(const int fds[2])
{
	static char block[65536];
	size_t total = 0;
	ssize_t n;

	for (int i = 0; i < 2; i++)
		for (; (n = write(fds[i], block, sizeof(block))) > 0; total += (size_t)n)
			;
	return total;
}

/* Twice the limit in socket buffers would show that they are not counted. */
static int take_sockets(int (*make)(int fds[2]))
{
	size_t total = 0;

	for (int i = 0; i < 480 && total < (size_t)2 * MEMORY_MB << 20; i++) {
		int fds[2];

		if (make(fds) < 0)
			break;
		total += stuff(fds);
	}
	return total < (size_t)2 * MEMORY_MB << 20 ? HELD : BROKEN;
}

static int make_unix(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
}

static int make_tcp(int fds[2])
{
	static int listener = -1;
	static struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);

	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(listener, (struct sockaddr *)&a, len) < 0 || listen(listener, 8) < 0 ||
		    getsockname(listener, (struct sockaddr *)&a, &len) < 0)
			return -1;
	}
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fds[0], (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return fds[1] < 0 ? -1 : fcntl(fds[0], F_SETFL, O_NONBLOCK);
}

static int take_unix(void *arg)
{
	(void)arg;
	return take_sockets(make_unix);
}

static int take_tcp(void *arg)
{
	(void)arg;
	return take_sockets(make_tcp);
}

/* Sockets that send to themselves and never read; each holds two datagrams. */
static int take_udp(void *arg)
{
	static char block[60000];
	unsigned info[16];
	size_t total = 0;

	(void)arg;
	for (int i = 0; i < 1000; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET };
		socklen_t len = sizeof(a);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 ||
		    getsockname(fd, (struct sockaddr *)&a, &len) < 0 ||
		    connect(fd, (struct sockaddr *)&a, len) < 0)
			break;
		for (int k = 0; k < 2; k++)
			(void)!write(fd, block, sizeof(block));
		len = sizeof(info);
		if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0)
			total += info[0]; /* SK_MEMINFO_RMEM_ALLOC */
	}
	return total < (size_t)MEMORY_MB * 3 / 2 << 20 ? HELD : BROKEN;
}

static int take_messages(void *arg)
{
	static struct {
		long type;
		char text[8192];
	} m = { .type = 1 };
	static int ids[2 * MEMORY_MB * 64];
	int n = 0, ret;

	(void)arg;
	for (; n < (int)LEN(ids); n++) {
		ids[n] = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
		if (ids[n] < 0 || msgsnd(ids[n], &m, sizeof(m.text), IPC_NOWAIT) < 0 ||
		    msgsnd(ids[n], &m, sizeof(m.text), IPC_NOWAIT) < 0)
			break;
	}
	ret = n == (int)LEN(ids) ? BROKEN : HELD;
	while (n-- > 0)
		msgctl(ids[n], IPC_RMID, NULL);
	return ret;
}

static int memory(const struct check *c)
{
	static const struct {
		const char *name;
		int (*take)(void *arg);
	} ways[] = {
		{ "anonymous", take_anonymous },
		{ "memfd", take_memfd },
		{ "tmpfs", take_tmpfs },
		{ "sysv", take_sysv },
		{ "tables", take_pages },
		{ "unix", take_unix },
		{ "tcp", take_tcp },
		{ "udp", take_udp },
		{ "messages", take_messages },
	};

	for (size_t i = 0; i < LEN(ways); i++) {
		int ret;

		if (strcmp(ways[i].name, c->arg) != 0)
			continue;
		ret = in_child(ways[i].take, NULL);
		if (ret == HELD || ret == 128 + SIGKILL || ret == 128 + SIGBUS)
			return usable();
		return ret == BROKEN ? broken("far more than the limit was taken")
				     : trouble("ended with %d", ret);
	}
	return trouble("no way %s", c->arg);
}

/* In a child, whose end releases everything. */
static int fill_dir(void *arg)
{
	int ret = fill(open_nameless, arg, DISK_TRIED_MB);

	if (ret == HELD && errno != ENOSPC && errno != EDQUOT)
		return TROUBLE;
	return ret;
}

static int fill_disk(const struct check *c)
{
	int fd = open_nameless(c->arg), ret;

	if (fd < 0)
		return unjudged("%s cannot be written: %s", c->arg, strerror(errno));
	close(fd);
	ret = in_child(fill_dir, (void *)(size_t)c->arg);
	if (ret == BROKEN)
		return broken("%d MB were written to %s", DISK_TRIED_MB, c->arg);
	if (ret != HELD)
		return broken("%s: no ENOSPC when full (%d)", c->arg, ret);
	fd = open_nameless(c->arg);
	if (fd < 0 || write(fd, "x", 1) != 1)
		return broken("nothing can be written to %s afterwards", c->arg);
	return usable();
}

static int remove_many(const char *dir, int count)
{
	char path[128];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	return rmdir(dir);
}

/* Creates empty files until one is refused. */
static int fill_inodes(const struct check *c)
{
	int tried = 2 * INODES, n = 0, error;
	char dir[64], path[128];

	snprintf(dir, sizeof(dir), "%s/escape-many.%d", c->arg, (int)getpid());
	if (mkdir(dir, 0700) < 0)
		return unjudged("%s cannot be written", c->arg);
	for (; n < tried; n++) {
		snprintf(path, sizeof(path), "%s/%d", dir, n);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			break;
	}
	error = errno;
	remove_many(dir, n);
	if (n >= tried)
		return broken("%d files were made", n);
	if (error != ENOSPC && error != EDQUOT && error != ENOMEM)
		return broken("the file too many said %s", strerror(error));
	snprintf(path, sizeof(path), "%s/escape-one", c->arg);
	if (mknod(path, S_IFREG | 0600, 0) < 0)
		return broken("no file can be made afterwards: %s", strerror(errno));
	unlink(path);
	return usable();
}

#define MEMORY(name, what, weak)                                                                   \
	{                                                                                          \
		"bombs-memory-" name, what " cannot exceed the memory limit", memory, BOTH, weak,  \
			.options = SMALL, .weak_options = SMALL, .arg = name                       \
	}
#define FILL(name, dir)                                                                            \
	{                                                                                          \
		"bombs-disk-" name, dir " is bounded and usable again", fill_disk, BOTH,           \
			.options = DISK, .weak_options = DISK_WEAK, .arg = dir                     \
	}

const struct check checks_bombs[] = {
	{ "bombs-forks", "processes end with EAGAIN at the limit", forks, BOTH, "cgroup",
	  .options = SMALL, .weak_options = SMALL },
	{ "bombs-threads", "threads end at the same limit", threads, BOTH, "cgroup",
	  .options = SMALL, .weak_options = SMALL },
	{ "bombs-fork-bomb", "a fork bomb stays small and leaves the sandbox usable", bomb, BOTH,
	  "cgroup", .options = "--pids 64 --memory 256M", .weak_options = "--pids 64" },
	MEMORY("anonymous", "plain memory", "cgroup"),
	MEMORY("memfd", "memory files", "cgroup"),
	MEMORY("tmpfs", "files in /dev/shm", "cgroup,shm"),
	MEMORY("sysv", "shared memory", "cgroup"),
	MEMORY("tables", "page tables", "cgroup"),
	MEMORY("unix", "buffers of local sockets", "cgroup"),
	MEMORY("tcp", "buffers of TCP sockets", "cgroup"),
	MEMORY("udp", "buffers of UDP sockets", "cgroup"),
	MEMORY("messages", "System V messages", "cgroup"),
	FILL("tmp", "/tmp"),
	FILL("home", "."),
	FILL("var-tmp", "/var/tmp"),
	{ "bombs-inodes", "files run out and come back", fill_inodes, BOTH,
	  .options = "--inodes 2000", .weak_options = "--inodes 100000", .arg = "/tmp" },
	{ 0 },
};
