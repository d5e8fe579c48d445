/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_stdin.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "init/exec/agent_conn.h"
#include "init/exec/event_loop.h"

enum { QUEUED_MAX = 64 }; /* buffers of all commands together: 4 MiB */

static unsigned nqueued;

static void free_buffer(struct stdin_queue *in)
{
	if (!in->buf)
		return;
	munmap(in->buf, AGENT_DATA_MAX);
	in->buf = NULL;
	nqueued--;
}

static void close_fd(struct process *r)
{
	struct stdin_queue *in = &r->in;

	if (in->fd < 0)
		return;
	if (in->polled && !in->tty)
		event_loop_del(in->fd);
	in->polled = false;
	/* The output stream still reads a terminal's master. */
	if (!in->tty || r->out[0].pipe != in->fd)
		close(in->fd);
	in->fd = -1;
}

/* On a terminal, end of file is the EOF character of its line discipline. */
static void send_eof(struct process *r)
{
	if (r->in.tty)
		(void)!write(r->in.fd, "\x04", 1);
	else
		close_fd(r);
}

/* Bytes written, or -errno. */
static ssize_t write_available(struct stdin_queue *in, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(in->fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0 && errno != EAGAIN)
			return -errno;
		else
			break;
	}
	return (ssize_t)done;
}

static void set_polling(struct process *r, bool on)
{
	struct stdin_queue *in = &r->in;

	if (in->fd < 0 || in->polled == on)
		return;
	/* The master of a terminal is already in the epoll set, for its output. */
	if (in->tty) {
		if (r->out[0].polled)
			event_loop_mod(in->fd, EVENT_OUT, process_table_index(r),
				       EPOLLIN | (on ? EPOLLOUT : 0));
	} else if (on) {
		event_loop_add(in->fd, EVENT_IN, process_table_index(r), EPOLLOUT);
	} else {
		event_loop_del(in->fd);
	}
	in->polled = on;
}

static int queue_rest(struct process *r, uint8_t conn, uint32_t req, const char *bytes, size_t len,
		      struct err *err)
{
	struct stdin_queue *in = &r->in;

	if (nqueued >= QUEUED_MAX)
		return err_set(err, ERR_LIMIT,
			       "too much input is queued for other commands; retry later");
	in->buf = mmap(NULL, AGENT_DATA_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (in->buf == MAP_FAILED) {
		in->buf = NULL;
		return err_sys(err, errno, "input");
	}
	nqueued++;
	memcpy(in->buf, bytes, len);
	in->off = 0;
	in->len = (uint32_t)len;
	in->reply_pending = true;
	in->reply_due = false;
	in->conn = conn;
	in->req = req;
	set_polling(r, true);
	return 0;
}

int process_stdin_write(struct process *r, uint8_t conn, uint32_t req, const struct agent_stdin *m,
			const char *bytes, struct err *err)
{
	struct stdin_queue *in = &r->in;
	ssize_t n;

	/* An empty write while bytes of a closed connection are queued: reply when they are
	 * written. */
	if (in->buf && !in->reply_pending && !in->reply_due && !m->len && (in->tty || !in->eof)) {
		in->reply_pending = true;
		in->conn = conn;
		in->req = req;
		in->eof = in->eof || m->eof;
		return 0;
	}
	if (in->reply_pending || in->reply_due || in->buf)
		return err_set(err, ERR_CONFLICT,
			       "command %llu has not read its previous input yet",
			       (unsigned long long)r->id);
	if (in->fd < 0)
		return err_set(err, ERR_INVALID, "standard input of command %llu is not open",
			       (unsigned long long)r->id);
	n = write_available(in, bytes, m->len);
	if (n < 0) {
		err_sys(err, (int)-n, "standard input of command %llu", (unsigned long long)r->id);
		err->code = ERR_INVALID;
		close_fd(r);
		return -1;
	}
	in->eof = m->eof != 0;
	if ((size_t)n < m->len)
		return queue_rest(r, conn, req, bytes + n, m->len - (size_t)n, err);
	if (in->eof)
		send_eof(r);
	return 1;
}

static void complete_write(struct process *r, int result)
{
	struct stdin_queue *in = &r->in;

	free_buffer(in);
	if (!in->reply_pending)
		return;
	in->reply_pending = false;
	in->reply_due = true;
	in->result = result;
	agent_conn_schedule_flush(1u << in->conn);
}

void process_stdin_ready(struct process *r)
{
	struct stdin_queue *in = &r->in;
	ssize_t n;

	if (in->fd < 0 || !in->buf)
		return;
	n = write_available(in, in->buf + in->off, in->len - in->off);
	if (n >= 0)
		in->off += (uint32_t)n;
	if (n >= 0 && in->off < in->len)
		return;
	set_polling(r, false);
	if (n < 0)
		close_fd(r);
	else if (in->eof)
		send_eof(r);
	complete_write(r, n < 0 ? (int)-n : 0);
}

void process_stdin_close(struct process *r)
{
	close_fd(r);
	complete_write(r, EPIPE);
}

void process_stdin_forget_conn(struct process *r, uint8_t conn)
{
	if (r->in.conn == conn)
		r->in.reply_pending = r->in.reply_due = false;
}
