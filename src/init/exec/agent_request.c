/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/orphan.h"
#include "init/exec/agent_request.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "init/exec/spare_shell.h"
#include "init/exec/agent_conn.h"
#include "init/exec/process.h"
#include "init/files/atomic_write.h"
#include "init/files/guest_file.h"
#include "init/exec/process_stdin.h"
#include "init/exec/file_job.h"
#include "init/exec/output_pump.h"
#include "init/exec/process_table.h"

/* One request while it is handled. */
struct request {
	uint8_t conn;
	uint32_t type, req;
	const char *msg;
	size_t len;
	int *fds;
	size_t nfds;
	struct agent_reply *reply; /* AGENT_OK, unless the handler puts something else in */
};

#define BODY(q, name)                                                                              \
	struct name m;                                                                             \
	memcpy(&m, (q)->msg + sizeof(struct agent_hdr), sizeof(m))

/* The command that the body names first. */
static struct process *find_process(const struct request *q, struct err *err)
{
	struct process *r;
	BODY(q, agent_ref);

	r = process_table_find(m.exec);
	if (!r)
		err_set(err, ERR_NOT_FOUND, "no such command: %llu", (unsigned long long)m.exec);
	return r;
}

static int handle_bind(struct request *q, struct err *err)
{
	BODY(q, agent_bind);

	if (init_binding.bound)
		return err_set(err, ERR_CONFLICT, "sandbox is already bound");
	init_binding.b = m;
	init_binding.one_id = (m.flags & AGENT_BIND_ONE_ID) != 0;
	init_binding.root_class = (m.flags & AGENT_BIND_ROOT_CLASS) != 0;
	init_binding.bound = true;
	/* The keeper has recorded the sandbox: it may outlive the keeper now. */
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	q->reply->none = !q->req; /* req 0: the keeper does not wait for a reply */
	return 0;
}

static int handle_hello(struct request *q, struct err *err)
{
	struct agent_hello h = process_table_summary();

	(void)err;
	agent_reply_put(q->reply, AGENT_HELLOR, q->req, &h, sizeof(h), NULL, 0);
	return 0;
}

static int reply_started(struct request *q, const struct process *r)
{
	struct agent_started s;

	if (!r)
		return -1;
	s = (struct agent_started){ r->id, r->pid, r->used_spare_shell };
	agent_reply_put(q->reply, AGENT_STARTED, q->req, &s, sizeof(s), NULL, 0);
	return 0;
}

static int handle_exec(struct request *q, struct err *err)
{
	size_t n = q->nfds;

	q->nfds = 0; /* process_start() owns them */
	return reply_started(q, process_start(q->conn, q->msg, q->len, q->fds, n, err));
}

static int handle_job(struct request *q, struct err *err)
{
	int fd = q->nfds ? q->fds[0] : -1;

	q->nfds = 0;
	return reply_started(q, file_job_start(q->conn, q->msg, q->len, fd, err));
}

static int handle_spare_shell(struct request *q, struct err *err)
{
	return spare_shell_set(q->msg, q->len, err);
}

static int handle_stdin(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);
	int got;
	BODY(q, agent_stdin);

	if (!r)
		return -1;
	got = process_stdin_write(r, q->conn, q->req, &m,
				  q->msg + sizeof(struct agent_hdr) + sizeof(m), err);
	q->reply->none = got == 0;
	return got < 0 ? -1 : 0;
}

static int handle_signal(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);
	BODY(q, agent_signal);

	return r ? process_signal(r, m.signo, m.scope, err) : -1;
}

static int handle_resize(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);
	BODY(q, agent_resize);

	return r ? process_resize(r, m.rows, m.cols, err) : -1;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
	if (v < low)
		return low;
	return v > high ? high : v;
}

static int handle_attach(struct request *q, struct err *err)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r = find_process(q, err);
	BODY(q, agent_offsets);

	if (!r)
		return -1;
	r->consumed[q->conn][0] = clamp(m.out, r->out[0].start, r->out[0].end);
	r->consumed[q->conn][1] = clamp(m.err, r->out[1].start, r->out[1].end);
	r->attached |= bit;
	r->notified &= (uint16_t)~bit;
	r->unreported &= (uint16_t)~bit;
	if (r->state == PROCESS_DONE)
		r->exit_due |= bit;
	else if (r->out[0].end > r->consumed[q->conn][0] || r->out[1].end > r->consumed[q->conn][1])
		r->unreported |= bit;
	agent_conn_schedule_flush(bit);
	return 0;
}

static void readers_changed(struct process *r)
{
	output_pump_readers_changed(r);
	process_end_if_drained(r);
}

static int handle_detach(struct request *q, struct err *err)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r = find_process(q, err);

	if (!r)
		return -1;
	r->attached &= (uint16_t)~bit;
	r->notified &= (uint16_t)~bit;
	r->exit_due &= (uint16_t)~bit;
	readers_changed(r);
	return 0;
}

static int handle_consumed(struct request *q, struct err *err)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r;
	BODY(q, agent_offsets);

	(void)err;
	q->reply->none = true;
	r = process_table_find(m.exec);
	if (!r || !(r->attached & bit))
		return 0;
	/* Never backwards: consumed output may be overwritten already. */
	r->consumed[q->conn][0] = clamp(m.out, r->consumed[q->conn][0], r->out[0].end);
	r->consumed[q->conn][1] = clamp(m.err, r->consumed[q->conn][1], r->out[1].end);
	r->notified &= (uint16_t)~bit;
	readers_changed(r);
	agent_conn_schedule_flush(bit);
	return 0;
}

static int handle_status(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);

	if (!r)
		return -1;
	agent_reply_proc(q->reply, q->req, r);
	return 0;
}

static int handle_forget(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);

	if (!r)
		return -1;
	if (r->state != PROCESS_DONE)
		return err_set(err, ERR_CONFLICT, "command %llu is still running",
			       (unsigned long long)r->id);
	process_release(r);
	return 0;
}

static int handle_deadlines(struct request *q, struct err *err)
{
	BODY(q, agent_deadlines);

	(void)err;
	orphan_set_deadlines(&m);
	return 0;
}

static int handle_limits(struct request *q, struct err *err)
{
	struct agent_bind *b = &init_binding.b;
	BODY(q, agent_limits);

	(void)err;
	b->output_pages = m.output_pages;
	if (b->open_files == m.open_files && b->file_bytes == m.file_bytes)
		return 0;
	b->open_files = m.open_files;
	b->file_bytes = m.file_bytes;
	spare_shell_restart(); /* the one that waits has the limits of before */
	return 0;
}

static int handle_logs(struct request *q, struct err *err)
{
	struct process *r = find_process(q, err);

	return r ? agent_reply_logs(q->reply, q->req, r, err) : -1;
}

static int handle_commit(struct request *q, struct err *err)
{
	BODY(q, agent_token);

	return atomic_write_end(q->conn, m.token, true, err);
}

static int handle_abort(struct request *q, struct err *err)
{
	BODY(q, agent_token);

	return atomic_write_end(q->conn, m.token, false, err);
}

static int handle_list(struct request *q, struct err *err)
{
	(void)err;
	(void)q;
	q->reply->none = q->reply->listing = true;
	return 0;
}

static int handle_file(struct request *q, struct err *err)
{
	static struct guest_file_reply f;

	f.fd = -1;
	if (guest_file_request(q->conn, q->type, q->msg, q->len, &f, err) < 0)
		return -1;
	if (f.type == AGENT_FD) {
		agent_reply_put(q->reply, AGENT_FD, q->req, &f.token, sizeof(f.token), NULL, 0);
		q->reply->fds[q->reply->nfds++] = f.fd;
	} else if (f.type == AGENT_STATR) {
		agent_reply_put(q->reply, AGENT_STATR, q->req, &f.st, sizeof(f.st), f.target,
				f.st.target_len);
	}
	return 0;
}

typedef int request_fn(struct request *q, struct err *err);

/* One entry per row of AGENT_REQUESTS: a row without its handle_*() does not compile. */
static request_fn *const handlers[] = {
#define HANDLER(name, fn, ...) [AGENT_##name] = handle_##fn,
	AGENT_BIND_ROW(HANDLER) AGENT_PROCESS_REQUESTS(HANDLER)
#undef HANDLER
#define HANDLER(name, ...) [AGENT_##name] = handle_file,
		AGENT_FILE_REQUESTS(HANDLER)
#undef HANDLER
};

void agent_request_handle(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
			  struct agent_reply *a)
{
	struct request q = {
		.conn = conn, .msg = msg, .len = len, .fds = fds, .nfds = nfds, .reply = a
	};
	const char *problem = agent_msg_problem(msg, len, nfds, true);
	struct agent_hdr h;
	struct err e = { 0 };
	int r;

	memcpy(&h, msg, sizeof(h));
	q.type = h.type;
	q.req = h.req;
	a->nfds = 0;
	agent_reply_ok(a, h.req);
	if (problem)
		r = err_set(&e, ERR_INVALID, "invalid message: %s", problem);
	else if (!init_binding.bound && q.type != AGENT_BIND)
		r = err_set(&e, ERR_UNAVAILABLE, "sandbox is not bound yet");
	else
		r = handlers[q.type](&q, &e);
	if (r < 0)
		agent_reply_error(a, h.req, &e);
	while (q.nfds)
		close(q.fds[--q.nfds]);
}
