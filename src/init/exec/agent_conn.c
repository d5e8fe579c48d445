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
#include "init/files/atomic_write.h"
#include "init/exec/process_stdin.h"
#include "init/exec/event_loop.h"
#include "init/exec/output_pump.h"
#include "init/exec/agent_request.h"

struct conn {
	bool used;
	bool flush_due; /* a reply or event may be due */
	bool blocked; /* its socket is full: wait for EPOLLOUT */
	bool reply_queued; /* a reply waits for the socket: don't read requests until it is sent */
	bool listing;
	bool mute; /* its peer is gone */
	int fd;
	uint32_t list_req, list_at;
	uint64_t blocked_us;
};

static struct conn conns[AGENT_CONNS_MAX];
static struct agent_reply queued_replies[AGENT_CONNS_MAX]; /* pages touched only for slow peers */
static struct agent_reply scratch_reply;
static char receive_buf[AGENT_MSG_MAX] __attribute__((aligned(4096)));
static bool listening;
static uint64_t alone_since_us; /* when the last connection was closed; 0: there was none */
static uint64_t listen_retry_us; /* after a failed accept; 0: no retry */

static uint16_t conn_bit(const struct conn *c)
{
	return (uint16_t)(1u << (c - conns));
}

static uint8_t conn_index(const struct conn *c)
{
	return (uint8_t)(c - conns);
}

static struct conn *find_free(void)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		if (!conns[i].used)
			return &conns[i];
	return NULL;
}

void agent_conn_listen(void)
{
	if (listening || !find_free())
		return;
	listening = event_loop_add(BOOT_FD_LISTEN, EVENT_LISTEN, 0, EPOLLIN) == 0;
	listen_retry_us = 0;
}

static void stop_listening(bool retry)
{
	if (listening)
		event_loop_del(BOOT_FD_LISTEN);
	listening = false;
	listen_retry_us = retry ? clock_mono_us() + 100 * 1000ull : 0;
}

/* A peer with a pid in this PID namespace is a guest. Guests must not connect. */
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
	struct conn *c = find_free();
	int fd;

	if (!c) {
		stop_listening(false);
		return;
	}
	fd = accept4(BOOT_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			stop_listening(true);
		return;
	}
	if (is_guest(fd) || event_loop_add(fd, EVENT_CONN, conn_index(c), EPOLLIN) < 0) {
		close(fd);
		return;
	}
	*c = (struct conn){ .used = true, .fd = fd };
}

bool agent_conn_is_alone(uint64_t *ret_since_us)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		if (conns[i].used)
			return false;
	*ret_since_us = alone_since_us;
	return alone_since_us != 0;
}

static void detach_all(struct conn *c)
{
	for (struct process *r = NULL; (r = process_table_next(r));) {
		bool was = (r->attached & conn_bit(c)) != 0;

		r->attached &= (uint16_t)~conn_bit(c);
		r->notified &= (uint16_t)~conn_bit(c);
		r->exit_due &= (uint16_t)~conn_bit(c);
		process_stdin_forget_conn(r, conn_index(c));
		if (was) {
			output_pump_readers_changed(r);
			process_end_if_drained(r);
		}
	}
}

static void conn_close(struct conn *c)
{
	if (!c->used)
		return;
	if (c->reply_queued)
		agent_reply_close(&queued_replies[conn_index(c)]);
	c->used = false;
	alone_since_us = clock_mono_us();
	event_loop_del(c->fd);
	close(c->fd);
	detach_all(c);
	atomic_write_forget_conn(conn_index(c));
	agent_conn_listen();
}

static void update_events(struct conn *c)
{
	uint32_t events = c->blocked ? EPOLLOUT : 0;

	if (!c->reply_queued && !c->listing)
		events |= EPOLLIN;
	event_loop_mod(c->fd, EVENT_CONN, conn_index(c), events);
}

void agent_conn_schedule_flush(uint32_t mask)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		conns[i].flush_due |= (mask >> i & 1) != 0;
}

/* The peer is gone, and what it sent before is still handled: the engine has recorded the commands
 * among it as started. Replies are dropped. */
static void mute(struct conn *c)
{
	if (c->reply_queued)
		agent_reply_close(&queued_replies[conn_index(c)]);
	c->reply_queued = c->listing = c->blocked = false;
	c->mute = true;
	update_events(c);
}

/* False if the socket is full, or the connection broke and is closed now. */
static bool send_message(struct conn *c, const struct agent_reply *a)
{
	int r = c->mute ? 0 : fd_message_send(c->fd, a->bytes, a->len, a->fds, a->nfds);

	if (r == -EPIPE || r == -ECONNRESET) {
		mute(c);
		return true;
	}
	if (r == -EAGAIN) {
		if (!c->blocked)
			c->blocked_us = clock_mono_us();
		c->blocked = true;
		update_events(c);
		return false;
	}
	if (r < 0) {
		conn_close(c);
		return false;
	}
	c->blocked_us = 0;
	return true;
}

static void send_reply(struct conn *c, struct agent_reply *a)
{
	if (a->none)
		return;
	if ((!c->blocked && send_message(c, a)) || !c->used) {
		agent_reply_close(a);
		return;
	}
	queued_replies[conn_index(c)] = *a;
	c->reply_queued = true;
	update_events(c);
}

static void receive(struct conn *c)
{
	int fds[AGENT_FDS_MAX];
	size_t nfds;
	int n;

	memset(receive_buf, 0, sizeof(struct agent_hdr));
	n = fd_message_recv(c->fd, receive_buf, sizeof(receive_buf), fds, AGENT_FDS_MAX, &nfds);
	if (n == -EAGAIN)
		return;
	memset(&scratch_reply, 0, sizeof(struct agent_hdr) + offsetof(struct agent_reply, bytes));
	if (n == -EMSGSIZE) {
		struct agent_hdr h;
		struct err e;

		memcpy(&h, receive_buf, sizeof(h));
		err_set(&e, ERR_LIMIT, "message or its descriptors too large");
		agent_reply_error(&scratch_reply, h.req, &e);
	} else if (n < (int)sizeof(struct agent_hdr)) {
		while (nfds)
			close(fds[--nfds]);
		conn_close(c);
		return;
	} else {
		agent_request_handle(conn_index(c), receive_buf, (size_t)n, fds, nfds,
				     &scratch_reply);
	}
	/* Give the memory of a large message back. */
	if (n > 16384)
		madvise(receive_buf, sizeof(receive_buf), MADV_DONTNEED);
	if (scratch_reply.listing) {
		c->listing = true;
		c->list_req = scratch_reply.hdr.req;
		c->list_at = 0;
		c->flush_due = true;
		update_events(c);
	}
	send_reply(c, &scratch_reply);
}

void agent_conn_ready(uint32_t n, uint32_t events)
{
	struct conn *c = &conns[n];

	if (!c->used)
		return;
	if (events & EPOLLOUT) {
		c->blocked = false;
		c->flush_due = true;
		update_events(c);
	}
	if ((events & EPOLLHUP) && (c->reply_queued || c->listing))
		mute(c);
	else if ((events & EPOLLIN) && !c->reply_queued && !c->listing)
		receive(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		conn_close(c);
}

/* ---- sending what is due --------------------------------------------------------------------- */

static bool flush_listing(struct conn *c)
{
	for (; c->list_at < AGENT_EXECS_MAX; c->list_at++) {
		struct process *r = process_table_at(c->list_at);

		if (!r)
			continue;
		agent_reply_proc(&scratch_reply, c->list_req, r);
		if (!send_message(c, &scratch_reply))
			return false;
	}
	agent_reply_ok(&scratch_reply, c->list_req);
	if (!send_message(c, &scratch_reply))
		return false;
	c->listing = false;
	update_events(c);
	return true;
}

static bool flush_input(struct conn *c, struct process *r)
{
	struct err e;

	if (!r->in.reply_due || r->in.conn != conn_index(c))
		return true;
	if (r->in.result) {
		err_sys(&e, r->in.result, "standard input of command %llu",
			(unsigned long long)r->id);
		e.code = ERR_INVALID;
		agent_reply_error(&scratch_reply, r->in.req, &e);
	} else {
		agent_reply_ok(&scratch_reply, r->in.req);
	}
	if (!send_message(c, &scratch_reply))
		return false;
	r->in.reply_due = false;
	return true;
}

static bool flush_events(struct conn *c, struct process *r)
{
	struct agent_progress now;
	struct agent_exit ex;

	if (r->exit_due & conn_bit(c)) {
		const char *sentence = r->is_file_job ? process_table_message(r) : "";

		ex = r->exit;
		output_pump_progress(r, &ex.at);
		agent_reply_put(&scratch_reply, AGENT_EXIT, 0, &ex, sizeof(ex), sentence,
				*sentence ? strlen(sentence) + 1 : 0);
		if (!send_message(c, &scratch_reply))
			return false;
		r->exit_due &= (uint16_t)~conn_bit(c);
		return true;
	}
	if (!(r->attached & r->unreported & conn_bit(c)) || (r->notified & conn_bit(c)) ||
	    r->state == PROCESS_DONE)
		return true;
	output_pump_progress(r, &now);
	agent_reply_put(&scratch_reply, AGENT_OUTPUT, 0, &now, sizeof(now), NULL, 0);
	if (!send_message(c, &scratch_reply))
		return false;
	r->notified |= conn_bit(c);
	r->unreported &= (uint16_t)~conn_bit(c);
	return true;
}

static void flush_conn(struct conn *c)
{
	c->flush_due = false;
	scratch_reply.nfds = 0;
	if (c->reply_queued) {
		struct agent_reply *a = &queued_replies[conn_index(c)];

		if (!send_message(c, a))
			return;
		agent_reply_close(a);
		c->reply_queued = false;
		update_events(c);
	}
	if (c->listing && !flush_listing(c))
		return;
	for (struct process *r = NULL; (r = process_table_next(r));)
		if (!flush_input(c, r) || !flush_events(c, r))
			return;
}

void agent_conn_flush(void)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		if (conns[i].used && conns[i].flush_due && !conns[i].blocked)
			flush_conn(&conns[i]);
}

void agent_conn_run_timers(uint64_t now_us)
{
	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		struct conn *c = &conns[i];

		if (c->used && c->blocked && now_us >= c->blocked_us + INIT_STUCK_MS * 1000ull)
			conn_close(c);
	}
	if (listen_retry_us && now_us >= listen_retry_us)
		agent_conn_listen();
}

uint64_t agent_conn_next_timer(void)
{
	uint64_t next = listen_retry_us ? listen_retry_us : UINT64_MAX;

	for (int i = 0; i < AGENT_CONNS_MAX; i++) {
		uint64_t at = conns[i].blocked_us + INIT_STUCK_MS * 1000ull;

		if (conns[i].used && conns[i].blocked && at < next)
			next = at;
	}
	return next;
}
