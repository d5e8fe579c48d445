/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { HELD_S = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cleanup_fn *current;
static void *current_arg;
static int signals = -1; /* of the thread that waits for them */

void cleanup_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* Leaves the signal pending until the end, so that cleanup_release() sees it. */
static void *wait_for_signal(void *arg)
{
	struct timespec until;
	sigset_t set;
	struct pollfd p = { .fd = signals, .events = POLLIN };
	int signo = 0;

	(void)arg;
	cleanup_signals(&set);
	while (poll(&p, 1, -1) < 1)
		;
	/* a request that takes longer may never be answered */
	until = clock_deadline(CLOCK_REALTIME, HELD_S * INT64_C(1000));
	if (pthread_mutex_timedlock(&lock, &until) == 0 && current)
		current(current_arg);
	(void)sigwait(&set, &signo);
	_exit(128 + signo);
}

static int watch(struct err *err)
{
	pthread_t thread;
	sigset_t set;
	int r;

	if (signals >= 0)
		return 0;
	cleanup_signals(&set);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return err_sys(err, errno, "signals");
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	r = pthread_create(&thread, NULL, wait_for_signal, NULL);
	if (r)
		return err_sys(err, r, "thread");
	pthread_detach(thread);
	return 0;
}

int cleanup_set(cleanup_fn *fn, void *arg, struct err *err)
{
	if (watch(err) < 0)
		return -1;
	cleanup_hold();
	current = fn;
	current_arg = arg;
	cleanup_release();
	return 0;
}

void cleanup_run(void)
{
	cleanup_hold();
	if (current)
		current(current_arg);
	current = NULL;
	cleanup_release();
}

void cleanup_clear(void)
{
	cleanup_hold();
	current = NULL;
	cleanup_release();
}

void cleanup_hold(void)
{
	pthread_mutex_lock(&lock);
}

void cleanup_release(void)
{
	sigset_t ours, pending;

	pthread_mutex_unlock(&lock);
	cleanup_signals(&ours);
	if (signals < 0 || sigpending(&pending) < 0 || sigandset(&ours, &ours, &pending) < 0)
		return;
	while (!sigisemptyset(&ours)) /* the other thread ends the program */
		pause();
}

void cleanup_child(void)
{
	sigset_t set;

	cleanup_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	signal(SIGPIPE, SIG_DFL);
}
