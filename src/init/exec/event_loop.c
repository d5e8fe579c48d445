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
#include "init/exec/process.h"
#include "init/exec/process_stdin.h"
#include "init/exec/output_pump.h"

static int set = -1, signals = -1;

int event_loop_init(void)
{
	sigset_t all;

	set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0)
		return -errno;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return -errno;
	return event_loop_add(signals, EVENT_SIGNAL, 0, EPOLLIN);
}

int event_loop_add(int fd, enum loop_kind kind, uint32_t n, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)kind << 32 | n };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void event_loop_mod(int fd, enum loop_kind kind, uint32_t n, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)kind << 32 | n };

	epoll_ctl(set, EPOLL_CTL_MOD, fd, &ev);
}

void event_loop_del(int fd)
{
	epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

static void on_output(struct process *r, int i, uint32_t events)
{
	if (i == 0 && (events & EPOLLOUT))
		exec_stdin_ready(r);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		output_pump_ready(r, i);
	process_output_moved(r);
}

static void on_signal(void)
{
	struct signalfd_siginfo info[8];

	while (read(signals, info, sizeof(info)) > 0)
		;
	process_reap();
}

static void on_event(const struct epoll_event *ev)
{
	uint32_t n = (uint32_t)ev->data.u64;
	enum loop_kind kind = (enum loop_kind)(ev->data.u64 >> 32);
	struct process *r;

	if (kind == EVENT_LISTEN) {
		agent_conn_accept();
		return;
	}
	if (kind == EVENT_SIGNAL) {
		on_signal();
		return;
	}
	if (kind == EVENT_CONN) {
		agent_conn_ready(n, ev->events);
		return;
	}
	r = process_table_at(n);
	if (!r)
		return;
	if (kind == EVENT_IN)
		exec_stdin_ready(r);
	else if (kind == EVENT_SHIM)
		process_shim_ready(r);
	else
		on_output(r, kind == EVENT_ERR, ev->events);
}

static int wait_ms(void)
{
	uint64_t a = process_next_timer(), b = agent_conn_next_timer(),
		 c = spare_shell_next_timer(), now;

	if (b < a)
		a = b;
	if (c < a)
		a = c;
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
		int n = epoll_wait(set, events, 16, wait_ms());

		/* Output first: a command whose last words and whose end came together is told
		 * of once. */
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 >> 32 != EVENT_CONN)
				on_event(&events[i]);
		}
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 >> 32 == EVENT_CONN)
				on_event(&events[i]);
		}
		process_timers(clock_mono_us());
		agent_conn_timers(clock_mono_us());
		agent_conn_flush();
		spare_shell_now();
	}
}
