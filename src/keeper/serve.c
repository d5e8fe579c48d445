/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "keeper/dispatch.h"
#include "keeper/job_table.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_parts.h"
#include "keeper/slot_pool.h"

enum {
	/* The keeper prepares slots and parts only after this long without a request, because a
	 * client uses a new sandbox at once and should not compete for the CPU. IDLE_SHORT_MS
	 * applies while the next create would find nothing prepared. */
	IDLE_SHORT_MS = 3,
	IDLE_MS = 25,
	TRASH_RETRY_MS = 2, /* the kernel needs some time to end killed processes */
	TRASH_SLOW_MS = 50,
	DRAIN_MS = 5000,
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

static bool read_signals(int sigfd)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(sigfd, &info, sizeof(info)) == sizeof(info))
		stop = stop || info.ssi_signo != SIGCHLD;
	keeper_reap();
	return stop;
}

static void destroy_one(struct sandbox_record *sb, void *arg)
{
	struct err err;

	(void)sandbox_end_destroy(arg, sb, &err);
}

static bool step_removals(struct keeper *k)
{
	bool empty = sandbox_end_empty_trash(k);

	keeper_reap();
	return job_table_step(k) && empty;
}

/* Ends all slots, and waits a limited time for removals to finish. */
static void drain(struct keeper *k)
{
	k->draining = true;
	job_table_cancel_all();
	while (k->nslots > 0)
		slot_pool_free(k, k->slots[--k->nslots], true);
	if (k->oneshot)
		sandbox_table_each(&k->table, destroy_one, k);
	for (int ms = 0; ms < DRAIN_MS && !step_removals(k); ms++)
		usleep(1000);
	for (int ms = 0; ms < SWEEP_MS && step_removals(k) && job_table_is_sweeping(k); ms++)
		usleep(1000);
	job_table_end(k);
	while (k->nparts > 0)
		slot_parts_drop(k, &k->parts[--k->nparts]);
}

void serve(struct keeper *k, int sock)
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
		n = poll(p, ARRAY_LEN(p), poll_timeout(k, more, trash_wait));

		if (n < 0 && errno != EINTR)
			break;
		if (p[1].revents) {
			if (read_signals(sigfd))
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
