/* SPDX-License-Identifier: Apache-2.0 */
/* The contenders that are plain processes. Most of them run in a child with its own mount
 * namespace: crun refuses a machine where versions 1 and 2 of cgroups are mounted side by side, and
 * version 2 must not be hidden from lodge or the host. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"

enum { ARGS_MAX = 40, IN_FLIGHT_MAX = 256, BURST = 100, CGROUP2_MAGIC = 0x63677270 };

struct order { /* to the child; answered by one byte */
	int caller, round, in_flight;
};

struct child {
	pid_t pid;
	int out;
	bool said_hi;
};

const char *contender_name(enum contender caller)
{
	static const char *const names[] = { "bare-bash", "bare-tiny", "bwrap",
					     "crun",	  "runc",      "lodge-run" };

	return names[caller];
}

bool peer_has(const struct bench *b, enum contender caller)
{
	switch (caller) {
	case BWRAP:
		return access("/usr/bin/bwrap", X_OK) == 0;
	case CRUN:
		return b->bundle && access("/usr/bin/crun", X_OK) == 0;
	case RUNC:
		return b->bundle && access("/usr/sbin/runc", X_OK) == 0;
	case BARE_BASH:
	case BARE_TINY:
	case LODGE_RUN:
	case CONTENDERS:
		break;
	}
	return true;
}

/* ---- command lines -------------------------------------------------------------------------- */

#define ECHO_HI "/bin/bash", "-c", "echo hi"

static void append(const char *argv[ARGS_MAX], const char *const *more)
{
	size_t n = 0;

	while (argv[n])
		n++;
	while (*more)
		argv[n++] = *more++;
	argv[n] = NULL;
}

static void append_oci(const struct bench *b, const char *argv[ARGS_MAX], const char *program)
{
	static char id[64];
	static unsigned serial;
	const char *const words[] = {
		program, "--root", b->state, "run", "-b", b->bundle, id, NULL
	};

	/* also the name of its cgroup, by which tests/bench/run finds leftovers */
	snprintf(id, sizeof(id), "lodgebench-%d-%u", (int)getpid(), serial++);
	append(argv, words);
}

static void command_line(const struct bench *b, enum contender caller, const char *argv[ARGS_MAX])
{
	static const char *const bash[] = { ECHO_HI, NULL };
	static const char *const bwrap[] = { "/usr/bin/bwrap",
					     "--unshare-all",
					     "--die-with-parent",
					     "--cap-drop",
					     "ALL",
					     "--ro-bind",
					     "/usr",
					     "/usr",
					     "--symlink",
					     "usr/bin",
					     "/bin",
					     "--symlink",
					     "usr/lib",
					     "/lib",
					     "--symlink",
					     "usr/lib64",
					     "/lib64",
					     "--proc",
					     "/proc",
					     "--dev",
					     "/dev",
					     "--tmpfs",
					     "/tmp",
					     ECHO_HI,
					     NULL };
	const char *const tiny[] = { b->tiny, NULL };
	const char *const run[] = { b->lodge, "run", "--home", b->home, "--", ECHO_HI, NULL };

	argv[0] = NULL;
	switch (caller) {
	case BARE_BASH:
		append(argv, bash);
		break;
	case BARE_TINY:
		append(argv, tiny);
		break;
	case BWRAP:
		append(argv, bwrap);
		break;
	case CRUN:
		append_oci(b, argv, "/usr/bin/crun");
		break;
	case RUNC:
		append_oci(b, argv, "/usr/sbin/runc");
		break;
	case LODGE_RUN:
		append(argv, run);
		break;
	case CONTENDERS:
		break;
	}
}

/* ---- one process ---------------------------------------------------------------------------- */

static void die(enum contender caller, const char *what)
{
	struct err err = { 0 };

	err_set(&err, ERR_INTERNAL, "%s: %s", contender_name(caller), what);
	must(-1, &err, "peer");
}

static void start(const struct bench *b, enum contender caller, struct child *c)
{
	static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/bin", "HOME=/", NULL };
	const char *argv[ARGS_MAX];
	posix_spawn_file_actions_t fa;
	int p[2], r;

	command_line(b, caller, argv);
	if (pipe2(p, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&fa) != 0)
		die(caller, "pipe");
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	r = posix_spawn(&c->pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv,
			(char *const *)(uintptr_t)env);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	if (r != 0)
		die(caller, strerrordesc_np(r));
	c->out = p[0];
	c->said_hi = false;
}

/* False when its output has ended. */
static bool take_output(struct child *c)
{
	char buf[256];
	ssize_t n = read(c->out, buf, sizeof(buf));

	if (n >= 3 && memcmp(buf, "hi\n", 3) == 0)
		c->said_hi = true;
	return n > 0;
}

static void finish(enum contender caller, struct child *c)
{
	int status;

	close(c->out);
	c->out = -1;
	if (waitpid(c->pid, &status, 0) != c->pid || status != 0 || !c->said_hi)
		die(caller, "did not say hi");
}

static void latency(const struct bench *b, enum contender caller, const char *what, int round,
		    int n, unsigned gap)
{
	for (int i = 0; i < n; i++) {
		struct child c;
		double t0, t1, t2;

		pause_us(gap);
		t0 = now_us();
		start(b, caller, &c);
		(void)take_output(&c);
		t1 = now_us();
		while (take_output(&c))
			;
		finish(caller, &c);
		t2 = now_us();
		put_sample(what, contender_name(caller), "out", round, t1 - t0);
		put_sample(what, contender_name(caller), "end", round, t2 - t0);
	}
}

void peer_latency(const struct bench *b, enum contender caller, int round)
{
	latency(b, caller, "cold", round, b->n, GAP_US);
}

void peer_rested(const struct bench *b, enum contender caller, int round)
{
	latency(b, caller, "rested", round, rested_n(b), REST_US);
}

void peer_http(const struct bench *b, enum contender caller, int round)
{
	latency(b, caller, "http", round, b->n, GAP_US);
}

/* ---- many at a time ------------------------------------------------------------------------- */

static int start_missing(const struct bench *b, enum contender caller, struct child *c, int n)
{
	for (int i = 0; i < n; i++)
		if (c[i].out < 0)
			start(b, caller, &c[i]);
	return n;
}

/* The number that ended. */
static int serve(enum contender caller, struct child *c, int n)
{
	struct pollfd p[IN_FLIGHT_MAX];
	int ended = 0;

	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = c[i].out, .events = POLLIN };
	if (poll(p, (nfds_t)n, 60000) <= 0)
		die(caller, "does not end");
	for (int i = 0; i < n; i++)
		if (p[i].revents && !take_output(&c[i])) {
			finish(caller, &c[i]);
			ended++;
		}
	return ended;
}

void peer_rate(const struct bench *b, enum contender caller, int round, int in_flight)
{
	struct child c[IN_FLIGHT_MAX];
	double t0 = now_us(), until = t0 + b->rate_ms * 1e3;
	int running = 0, done = 0, ended;
	char what[32];

	for (int i = 0; i < in_flight; i++)
		c[i].out = -1;
	do {
		if (now_us() < until)
			running = start_missing(b, caller, c, in_flight);
		ended = serve(caller, c, in_flight);
		done += ended;
		running -= ended;
	} while (running > 0);
	snprintf(what, sizeof(what), "rate%d", in_flight);
	put_sample(what, contender_name(caller), "per_s", round, done * 1e6 / (now_us() - t0));
}

void peer_burst(const struct bench *b, enum contender caller, int round)
{
	struct child c[BURST];
	double t0 = now_us();
	int running = BURST;

	for (int i = 0; i < BURST; i++)
		start(b, caller, &c[i]);
	while (running > 0)
		running -= serve(caller, c, BURST);
	put_sample("http_burst", contender_name(caller), "us", round, now_us() - t0);
}

/* ---- the child ------------------------------------------------------------------------------ */

static void hide_cgroup2(void)
{
	static const char at[] = "/sys/fs/cgroup/unified";
	struct statfs fs;

	if (geteuid() != 0)
		return;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die(CRUN, "mount namespace");
	if (statfs(at, &fs) == 0 && fs.f_type == CGROUP2_MAGIC && umount2(at, MNT_DETACH) == 0)
		put_note("crun 1.8 refuses a machine with both cgroup versions: the contenders ran "
			 "where version 2 is not mounted");
}

static void obey(const struct bench *b, int sock)
{
	struct order o;

	while (recv(sock, &o, sizeof(o), 0) == sizeof(o)) {
		if (o.in_flight == PEER_LATENCY)
			peer_latency(b, (enum contender)o.caller, o.round);
		else if (o.in_flight == PEER_RESTED)
			peer_rested(b, (enum contender)o.caller, o.round);
		else if (o.in_flight == PEER_HTTP)
			peer_http(b, (enum contender)o.caller, o.round);
		else if (o.in_flight == PEER_BURST)
			peer_burst(b, (enum contender)o.caller, o.round);
		else
			peer_rate(b, (enum contender)o.caller, o.round, o.in_flight);
		fflush(stdout);
		if (send(sock, "", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}

int peer_start(struct bench *b, struct err *err)
{
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, errno, "socketpair");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0) {
		close(sv[0]);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		hide_cgroup2();
		obey(b, sv[1]);
	}
	close(sv[1]);
	b->peer = sv[0];
	return 0;
}

void peer_ask(const struct bench *b, enum contender caller, int round, int in_flight)
{
	struct order o = { (int)caller, round, in_flight };
	char answer;

	if (!peer_has(b, caller))
		return;
	fflush(stdout);
	if (send(b->peer, &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o) ||
	    recv(b->peer, &answer, 1, 0) != 1)
		die(caller, "the process that runs it is gone");
}
