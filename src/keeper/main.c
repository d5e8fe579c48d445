/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-keeper --home DIR [--oneshot | --closed ID]; the engine's socket is descriptor 3. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/clock.h"
#include "keeper/dispatch.h"
#include "keeper/init_socket.h"
#include "keeper/job_table.h"
#include "keeper/sandbox_adopt.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_pool.h"
#include "keeper/template_ops.h"
#include "keeper/volume_guard.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

enum {
	SEND_WAIT_S = 5,
};

static const char usage[] =
	"usage: lodge-keeper --home DIR [--oneshot | --closed ID]\n"
	"\n"
	"Create and end sandboxes for lodge. lodge, lodged and liblodge start this program and\n"
	"send it requests over descriptor 3; it is not meant to be run by hand.\n"
	"\n"
	"  --home DIR   directory of templates and sandboxes\n"
	"  --oneshot    end every sandbox and exit when the socket closes\n"
	"  --closed ID  require DIR to be this directory (device.inode, hexadecimal)\n"
	"               and refuse to mount other directories of the host\n"
	"  --help       print this help and exit\n"
	"  --version    print the version and exit\n";

static struct keeper keeper;

static const char *parse_options(int argc, char **argv, struct keeper *k)
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'd' },   { "oneshot", no_argument, NULL, 'o' },
		{ "closed", required_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },	    { 0 }
	};
	const char *home = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			home = optarg;
			break;
		case 'o':
			k->oneshot = true;
			break;
		case 'c':
			k->closed = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'v':
			puts("lodge-keeper " LODGE_VERSION);
			exit(0);
		default:
			exit(2);
		}
	}
	if (!home || optind < argc) {
		fputs(usage, stderr);
		exit(2);
	}
	return home;
}

/* ---- the main loop --------------------------------------------------------------------------- */

enum {
	/* The keeper prepares slots and parts only after this long without a request, because a
	 * client uses a new sandbox at once and should not compete for the CPU. IDLE_SHORT_MS
	 * applies while the next create would find nothing prepared. */
	IDLE_SHORT_MS = 3,
	IDLE_MS = 25,
	TRASH_RETRY_MS = 2, /* the kernel needs some time to end killed processes */
	TRASH_SLOW_MS = 50,
	DRAIN_MS = 5000,
	BIND_MS = 3000, /* for all new sandboxes together */
	NEW_MS = 10000, /* an older one has read its binding */
	SWEEP_MS = 500, /* wait this long for trees being removed; the next keeper continues */
};

static int poll_timeout(const struct keeper *k, bool more, int trash_wait)
{
	if (k->trash_count)
		return trash_wait;
	if (!more)
		return slot_pool_next_expiry_ms(k);
	return slot_pool_is_short(k) ? IDLE_SHORT_MS : IDLE_MS;
}

static bool read_signals(struct keeper *k, int sigfd)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(sigfd, &info, sizeof(info)) == sizeof(info))
		stop = stop || info.ssi_signo != SIGCHLD;
	keeper_reap(k);
	return stop;
}

static void destroy_one(struct sandbox_record *sb, void *arg)
{
	struct err err;

	(void)sandbox_end_destroy(arg, sb, &err);
}

/* A sandbox whose creation was answered must not end with this process. */
struct settling {
	struct keeper *k;
	int64_t now_ms;
};

static void settle_one(struct sandbox_record *sb, void *arg)
{
	struct settling *s = arg;

	if (sb->made_ms && s->now_ms - sb->made_ms < NEW_MS && !sb->exited)
		init_socket_await_bound(s->k, sb->id, s->now_ms + BIND_MS);
}

static bool step_removals(struct keeper *k)
{
	bool empty = sandbox_end_empty_trash(k);

	keeper_reap(k);
	return job_table_step(k) && empty;
}

/* Ends all slots, and waits a limited time for removals to finish. */
static void drain(struct keeper *k)
{
	struct settling s = { k, clock_mono_ms() };

	k->draining = true;
	if (!k->oneshot)
		sandbox_table_each(&k->table, settle_one, &s);
	volume_guard_end();
	job_table_cancel_all();
	while (k->nslots > 0)
		slot_pool_free(k, k->slots[--k->nslots], true);
	if (k->oneshot)
		sandbox_table_each(&k->table, destroy_one, k);
	if (k->oneshot &&
	    k->sealed_template) /* its engine may have been killed while it built one */
		template_ops_sweep(k);
	for (int ms = 0; ms < DRAIN_MS && !step_removals(k); ms++)
		usleep(1000);
	for (int ms = 0; ms < SWEEP_MS && step_removals(k) && job_table_is_sweeping(k); ms++)
		usleep(1000);
	job_table_end(k);
	while (k->nparts > 0)
		slot_pool_drop_parts(k, &k->parts[--k->nparts]);
}

/* Serves requests until the engine disconnects or a signal arrives, then finishes pending work. */
static void serve(struct keeper *k, int sock)
{
	sigset_t set;
	auto_close int sigfd = -1;
	bool more = true;
	int trash_wait = TRASH_RETRY_MS;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	while (1) {
		struct pollfd p[2] = { { .fd = sock, .events = POLLIN },
				       { .fd = sigfd, .events = POLLIN } };
		int n;

		(void)job_table_step(k);
		volume_guard_step(k);
		n = poll(p, ARRAY_LEN(p), poll_timeout(k, more, trash_wait));

		if (n < 0 && errno != EINTR)
			break;
		if (p[1].revents) {
			if (read_signals(k, sigfd))
				break;
			more = slot_pool_drop_dead(k) || more;
		}
		if (p[0].revents) {
			if (!dispatch_one(k, sock))
				break;
			more = true;
			trash_wait = TRASH_RETRY_MS;
			continue;
		}
		if (!k->trash_count && n == 0)
			more = slot_pool_fill_one(k);
		else if (!sandbox_end_empty_trash(k))
			trash_wait = trash_wait < TRASH_SLOW_MS ? trash_wait * 2 : TRASH_SLOW_MS;
	}
	drain(k);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Answers the first request with the error. False: no request came. */
static bool reply_error(int sock, const struct err *err)
{
	struct keeper_reply r = { .version = KEEPER_VERSION, .code = err->code, .sys = err->sys };
	struct keeper_request in;

	snprintf(r.msg, sizeof(r.msg), "%s", err->msg);
	if (recv(sock, &in, sizeof(in), 0) <= 0)
		return false;
	r.op = in.op;
	return send(sock, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r);
}

int main(int argc, char **argv)
{
	struct keeper *k = &keeper;
	const char *home = parse_options(argc, argv, k);
	char name[32] = "";
	struct err err = { 0 };
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(KEEPER_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fputs("lodge-keeper: descriptor 3 must be a connected SOCK_SEQPACKET socket\n",
		      stderr);
		return 2;
	}
	(void)fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC);
	/* an engine that does not read its replies in time counts as disconnected */
	(void)setsockopt(KEEPER_FD, SOL_SOCKET, SO_SNDTIMEO,
			 &(struct timeval){ .tv_sec = SEND_WAIT_S }, sizeof(struct timeval));
	umask(022);
	if (keeper_open(k, home, name, &err) < 0) {
		if (!reply_error(KEEPER_FD, &err))
			fprintf(stderr, "lodge-keeper: %s\n", err.msg);
		return 1;
	}
	sandbox_adopt_sweep_oneshots(k, name);
	if (!k->oneshot && sandbox_adopt_all(k, &err) < 0)
		fprintf(stderr, "lodge-keeper: %s\n", err.msg);
	if (!k->oneshot)
		volume_guard_recover(k);
	serve(k, KEEPER_FD);
	keeper_close(k, name);
	return 0;
}
