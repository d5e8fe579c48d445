/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/event_loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/exec/spare_shell.h"
#include "init/exec/agent_conn.h"
#include "init/exec/orphan.h"
#include "init/exec/process.h"
#include "init/exec/process_stdin.h"
#include "init/exec/output_pump.h"

static int epoll_fd = -1, signal_fd = -1;

int event_loop_init(void)
{
	sigset_t all;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return -errno;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return -errno;
	return event_loop_add(signal_fd, EVENT_SIGNAL, 0, EPOLLIN);
}

int event_loop_add(int fd, enum event_kind kind, uint32_t n, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)kind << 32 | n };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void event_loop_mod(int fd, enum event_kind kind, uint32_t n, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)kind << 32 | n };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &ev);
}

void event_loop_del(int fd)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void handle_output(struct process *r, int i, uint32_t events)
{
	if (i == 0 && (events & EPOLLOUT))
		process_stdin_ready(r);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		output_pump_ready(r, i);
	process_end_if_drained(r);
}

static void handle_signal(void)
{
	struct signalfd_siginfo info[8];

	while (read(signal_fd, info, sizeof(info)) > 0)
		;
	process_reap();
}

static void handle_event(const struct epoll_event *ev)
{
	uint32_t n = (uint32_t)ev->data.u64;
	enum event_kind kind = (enum event_kind)(ev->data.u64 >> 32);
	struct process *r = kind > EVENT_CONN ? process_table_at(n) : NULL;

	if (kind == EVENT_LISTEN)
		agent_conn_accept();
	else if (kind == EVENT_SIGNAL)
		handle_signal();
	else if (kind == EVENT_CONN)
		agent_conn_ready(n, ev->events);
	else if (r && kind == EVENT_IN)
		process_stdin_ready(r);
	else if (r && kind == EVENT_SUBREAPER)
		process_subreaper_ready(r);
	else if (r)
		handle_output(r, kind == EVENT_ERR, ev->events);
}

static int next_timeout_ms(void)
{
	uint64_t a = process_next_timer(), b = agent_conn_next_timer(),
		 c = spare_shell_next_timer(), d = orphan_next_timer(), now;

	if (b < a)
		a = b;
	if (c < a)
		a = c;
	if (d < a)
		a = d;
	if (a == UINT64_MAX)
		return -1;
	now = clock_mono_us();
	if (a <= now)
		return 0;
	a = (a - now + 999) / 1000;
	return a > 3600000 ? 3600000 : (int)a;
}

void event_loop_run(void)
{
	struct epoll_event events[16];

	for (;;) {
		int n = epoll_wait(epoll_fd, events, 16, next_timeout_ms());

		/* Output first, so that output and exit of a command that arrive together are
		 * reported in one event. */
		for (int i = 0; i < 2 * n; i++) {
			const struct epoll_event *ev = &events[i % n];

			if ((ev->data.u64 >> 32 == EVENT_CONN) == (i >= n))
				handle_event(ev);
		}
		process_run_timers(clock_mono_us());
		agent_conn_run_timers(clock_mono_us());
		orphan_run_timers(clock_mono_us());
		agent_conn_flush();
		spare_shell_start_if_due();
	}
}
