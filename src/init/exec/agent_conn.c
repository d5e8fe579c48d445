/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/agent_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_message.h"
#include "init/exec/process.h"
#include "init/files/guest_file.h"
#include "init/exec/process_stdin.h"
#include "init/exec/event_loop.h"
#include "init/exec/output_pump.h"
#include "init/exec/agent_request.h"

struct conn {
	bool used;
	bool wake; /* something may be owed to it */
	bool blocked; /* its socket is full */
	bool pending; /* an answer waits for room: nothing more is read meanwhile */
	bool listing;
	int fd;
	uint32_t list_req, list_at;
	uint64_t blocked_us;
};

static struct conn conns[AGENT_CONNS_MAX];
static struct answer waiting[AGENT_CONNS_MAX]; /* touched only for a peer that is slow */
static struct answer out;
static char rx[AGENT_MSG_MAX] __attribute__((aligned(4096)));
static bool listening;
static uint64_t listen_again_us; /* after a failed accept; 0: not waiting */

static uint16_t bit(const struct conn *c)
{
	return (uint16_t)(1u << (c - conns));
}

static uint8_t number(const struct conn *c)
{
	return (uint8_t)(c - conns);
}

void agent_conn_listen(void)
{
	bool room = false;

	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		room |= !conns[i].used;
	if (!room || listening)
		return;
	listening = event_loop_add(BOOT_FD_LISTEN, EVENT_LISTEN, 0, EPOLLIN) == 0;
	listen_again_us = 0;
}

static void stop_listening(bool come_back)
{
	if (listening)
		event_loop_del(BOOT_FD_LISTEN);
	listening = false;
	listen_again_us = come_back ? clock_mono_us() + 100 * 1000ull : 0;
}

/* A process that this namespace can see is a guest, and no guest has business here. */
static bool is_guest(int fd)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);

	if (!init_binding.pid1)
		return false;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid != 0;
}

void agent_conn_accept(void)
{
	struct conn *c = conns;
	int fd;

	while (c < conns + AGENT_CONNS_MAX && c->used)
		c++;
	if (c == conns + AGENT_CONNS_MAX) {
		stop_listening(false);
		return;
	}
	fd = accept4(BOOT_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			stop_listening(true);
		return;
	}
	if (is_guest(fd) || event_loop_add(fd, EVENT_CONN, number(c), EPOLLIN) < 0) {
		close(fd);
		return;
	}
	*c = (struct conn){ .used = true, .fd = fd };
}

static void detach_all(struct conn *c)
{
	for (uint32_t i = 0; i < process_table_end(); i++) {
		struct process *r = process_table_at(i);
		bool was;

		if (!r)
			continue;
		was = (r->attached & bit(c)) != 0;
		r->attached &= (uint16_t)~bit(c);
		r->told &= (uint16_t)~bit(c);
		r->exit_due &= (uint16_t)~bit(c);
		r->exit_sent &= (uint16_t)~bit(c);
		exec_stdin_forget_conn(r, number(c));
		if (was) {
			output_pump_readers_changed(r);
			process_output_moved(r);
		}
	}
}

static void conn_close(struct conn *c)
{
	if (!c->used)
		return;
	if (c->pending)
		answer_close(&waiting[number(c)]);
	c->used = false;
	event_loop_del(c->fd);
	close(c->fd);
	detach_all(c);
	guest_file_forget_conn(number(c));
	agent_conn_listen();
}

static void update_interest(struct conn *c)
{
	uint32_t events = c->blocked ? EPOLLOUT : 0;

	if (!c->pending && !c->listing)
		events |= EPOLLIN;
	event_loop_mod(c->fd, EVENT_CONN, number(c), events);
}

void agent_conn_wake(uint8_t n)
{
	conns[n].wake = true;
}

void agent_conn_wake_mask(uint16_t mask)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		if (mask & (1u << i))
			agent_conn_wake((uint8_t)i);
	}
}

void agent_conn_output(struct process *r)
{
	if (r->state != PROCESS_DONE)
		agent_conn_wake_mask(r->attached & (uint16_t)~r->told);
}

/* False if it could not be sent now; the connection may be gone afterwards. */
static bool transmit(struct conn *c, const struct answer *a)
{
	int r = fd_message_send(c->fd, a->bytes, a->len, a->fds, a->nfds);

	if (r == -EAGAIN) {
		if (!c->blocked)
			c->blocked_us = clock_mono_us();
		c->blocked = true;
		update_interest(c);
		return false;
	}
	if (r < 0) {
		conn_close(c);
		return false;
	}
	c->blocked_us = 0;
	return true;
}

static void send_answer(struct conn *c, struct answer *a)
{
	if (a->none)
		return;
	if ((!c->blocked && transmit(c, a)) || !c->used) {
		answer_close(a);
		return;
	}
	waiting[number(c)] = *a;
	c->pending = true;
	update_interest(c);
}

static void receive(struct conn *c)
{
	int fds[AGENT_FDS_MAX];
	size_t nfds;
	int n;

	memset(rx, 0, sizeof(struct agent_hdr));
	n = fd_message_recv(c->fd, rx, sizeof(rx), fds, AGENT_FDS_MAX, &nfds);
	if (n == -EAGAIN)
		return;
	memset(&out, 0, sizeof(struct agent_hdr) + offsetof(struct answer, bytes));
	if (n == -EMSGSIZE) {
		struct agent_hdr h;
		struct err e;

		memcpy(&h, rx, sizeof(h));
		err_set(&e, ERR_LIMIT, "the message or its descriptors did not fit");
		answer_error(&out, h.req, &e);
	} else if (n < (int)sizeof(struct agent_hdr)) {
		while (nfds)
			close(fds[--nfds]);
		conn_close(c);
		return;
	} else {
		request_handle(number(c), rx, (size_t)n, fds, nfds, &out);
	}
	/* A large message leaves nothing behind. */
	if (n > 16384)
		madvise(rx, sizeof(rx), MADV_DONTNEED);
	if (out.listing) {
		c->listing = true;
		c->list_req = out.hdr.req;
		c->list_at = 0;
		c->wake = true;
		update_interest(c);
	}
	send_answer(c, &out);
}

void agent_conn_ready(uint32_t n, uint32_t events)
{
	struct conn *c = &conns[n];

	if (!c->used)
		return;
	if (events & EPOLLOUT) {
		c->blocked = false;
		c->wake = true;
		update_interest(c);
	}
	if ((events & EPOLLIN) && !c->pending && !c->listing)
		receive(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		conn_close(c);
}

/* ---- what is owed -------------------------------------------------------------------------- */

static bool flush_listing(struct conn *c)
{
	while (c->list_at < process_table_end()) {
		struct process *r = process_table_at(c->list_at);

		if (r) {
			answer_proc(&out, c->list_req, r);
			if (!transmit(c, &out))
				return false;
		}
		c->list_at++;
	}
	answer_put(&out, AGENT_OK, c->list_req, NULL, 0, NULL, 0);
	if (!transmit(c, &out))
		return false;
	c->listing = false;
	update_interest(c);
	return true;
}

static bool flush_input(struct conn *c, struct process *r)
{
	struct err e;

	if (!r->in.answered || r->in.conn != number(c))
		return true;
	if (r->in.result) {
		err_sys(&e, r->in.result, "standard input of command %llu",
			(unsigned long long)r->id);
		e.code = ERR_INVALID;
		answer_error(&out, r->in.req, &e);
	} else {
		answer_put(&out, AGENT_OK, r->in.req, NULL, 0, NULL, 0);
	}
	if (!transmit(c, &out))
		return false;
	r->in.answered = false;
	return true;
}

static bool flush_events(struct conn *c, struct process *r)
{
	struct agent_progress now;
	struct agent_exit ex;

	if (r->exit_due & bit(c)) {
		const char *sentence = r->job ? process_table_sentence(r) : "";

		ex = r->exit;
		output_pump_progress(r, &ex.at);
		answer_put(&out, AGENT_EXIT, 0, &ex, sizeof(ex), sentence,
			   *sentence ? strlen(sentence) + 1 : 0);
		if (!transmit(c, &out))
			return false;
		r->exit_due &= (uint16_t)~bit(c);
		r->exit_sent |= bit(c);
		return true;
	}
	if (!(r->attached & r->news & bit(c)) || (r->told & bit(c)) || r->state == PROCESS_DONE)
		return true;
	output_pump_progress(r, &now);
	answer_put(&out, AGENT_OUTPUT, 0, &now, sizeof(now), NULL, 0);
	if (!transmit(c, &out))
		return false;
	r->told |= bit(c);
	r->news &= (uint16_t)~bit(c);
	return true;
}

static void flush_one(struct conn *c)
{
	c->wake = false;
	out.nfds = 0;
	if (c->pending) {
		struct answer *a = &waiting[number(c)];

		if (!transmit(c, a))
			return;
		answer_close(a);
		c->pending = false;
		update_interest(c);
	}
	if (c->listing && !flush_listing(c))
		return;
	for (uint32_t i = 0; i < process_table_end(); i++) {
		struct process *r = process_table_at(i);

		if (r && (!flush_input(c, r) || !flush_events(c, r)))
			return;
	}
}

void agent_conn_flush(void)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		if (conns[i].used && conns[i].wake && !conns[i].blocked)
			flush_one(&conns[i]);
	}
}

void agent_conn_timers(uint64_t now_us)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		struct conn *c = &conns[i];

		if (c->used && c->blocked && now_us >= c->blocked_us + INIT_STUCK_MS * 1000ull)
			conn_close(c);
	}
	if (listen_again_us && now_us >= listen_again_us)
		agent_conn_listen();
}

uint64_t agent_conn_next_timer(void)
{
	uint64_t next = listen_again_us ? listen_again_us : UINT64_MAX;

	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		uint64_t at = conns[i].blocked_us + INIT_STUCK_MS * 1000ull;

		if (conns[i].used && conns[i].blocked && at < next)
			next = at;
	}
	return next;
}
