/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/agent_request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "init/exec/spare_shell.h"
#include "init/exec/agent_conn.h"
#include "init/exec/process.h"
#include "init/files/guest_file.h"
#include "init/exec/process_stdin.h"
#include "init/exec/file_job.h"
#include "init/exec/output_pump.h"
#include "init/exec/process_table.h"

/* One request while it is worked on. */
struct request {
	uint8_t conn;
	uint32_t type, req;
	const char *msg;
	size_t len;
	int *fds;
	size_t nfds;
};

#define BODY(q, name)                                                                              \
	struct name m;                                                                             \
	memcpy(&m, (q)->msg + sizeof(struct agent_hdr), sizeof(m))

void answer_put(struct answer *a, uint32_t type, uint32_t req, const void *fixed, size_t fixed_len,
		const void *tail, size_t tail_len)
{
	const size_t room = sizeof(a->bytes) - sizeof(a->hdr) - fixed_len;

	if (tail_len > room)
		tail_len = room;
	a->none = a->listing = false;
	a->hdr = (struct agent_hdr){ .type = type,
				     .req = req,
				     .len = (uint32_t)(fixed_len + tail_len) };
	if (fixed_len)
		memcpy(a->bytes + sizeof(a->hdr), fixed, fixed_len);
	if (tail_len)
		memcpy(a->bytes + sizeof(a->hdr) + fixed_len, tail, tail_len);
	a->len = (uint32_t)(sizeof(a->hdr) + fixed_len + tail_len);
}

void answer_error(struct answer *a, uint32_t req, const struct err *err)
{
	struct agent_error e = { .code = err->code, .sys = err->sys };

	answer_put(a, AGENT_ERROR, req, &e, sizeof(e), err->msg, strlen(err->msg) + 1);
}

void answer_close(struct answer *a)
{
	while (a->nfds)
		close(a->fds[--a->nfds]);
}

static struct agent_proc proc_of(const struct process *r)
{
	struct agent_proc p = {
		.exec = r->id,
		.pid = r->pid,
		.state = r->state == PROCESS_DONE ? AGENT_EXITED : AGENT_RUNNING,
		.flags = r->flags,
		.argc = r->argc,
		.started_ms = r->started_ms,
		.exit = r->exit,
	};

	output_pump_progress(r, &p.exit.at);
	return p;
}

void answer_proc(struct answer *a, uint32_t req, struct process *r)
{
	struct agent_proc p = proc_of(r);

	answer_put(a, AGENT_PROC, req, &p, sizeof(p), process_table_text(r), r->text_len);
}

static void answer_ok(struct answer *a, const struct request *q)
{
	answer_put(a, AGENT_OK, q->req, NULL, 0, NULL, 0);
}

static struct process *find(uint64_t id, struct err *err)
{
	struct process *r = process_table_find(id);

	if (!r)
		err_set(err, ERR_NOT_FOUND, "command %llu is not known", (unsigned long long)id);
	return r;
}

static int do_bind(const struct request *q, struct answer *a, struct err *err)
{
	BODY(q, agent_bind);

	if (init_binding.bound)
		return err_set(err, ERR_CONFLICT, "this sandbox is bound already");
	init_binding.b = m;
	init_binding.one_id = (m.flags & AGENT_BIND_ONE_ID) != 0;
	init_binding.root_class = (m.flags & AGENT_BIND_ROOT_CLASS) != 0;
	init_binding.bound = true;
	/* recorded by now: from here on it outlives the keeper */
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	if (q->req) /* the keeper itself does not wait: whatever comes next is queued behind this */
		answer_ok(a, q);
	return 0;
}

static int do_hello(const struct request *q, struct answer *a)
{
	struct agent_hello h = { AGENT_VERSION, process_table_count(), process_table_last_id() };

	answer_put(a, AGENT_HELLOR, q->req, &h, sizeof(h), NULL, 0);
	return 0;
}

static int do_exec(struct request *q, struct answer *a, struct err *err)
{
	struct agent_started s;
	size_t n = q->nfds;

	q->nfds = 0; /* taken */
	if (process_start(q->conn, q->msg, q->len, q->fds, n, &s, err) < 0)
		return -1;
	answer_put(a, AGENT_STARTED, q->req, &s, sizeof(s), NULL, 0);
	return 0;
}

static int do_job(struct request *q, struct answer *a, struct err *err)
{
	struct agent_started s;
	int fd = q->nfds ? q->fds[0] : -1;

	q->nfds = 0;
	if (job_start(q->conn, q->msg, q->len, fd, &s, err) < 0)
		return -1;
	answer_put(a, AGENT_STARTED, q->req, &s, sizeof(s), NULL, 0);
	return 0;
}

static int do_arm(const struct request *q, struct answer *a, struct err *err)
{
	if (spare_shell_set(q->msg, q->len, err) < 0)
		return -1;
	answer_ok(a, q);
	return 0;
}

static int do_stdin(const struct request *q, struct answer *a, struct err *err)
{
	struct process *r;
	int got;
	BODY(q, agent_stdin);

	r = find(m.exec, err);
	if (!r)
		return -1;
	got = exec_stdin_put(r, q->conn, q->req, &m, q->msg + sizeof(struct agent_hdr) + sizeof(m),
			     err);
	if (got < 0)
		return -1;
	if (got)
		answer_ok(a, q);
	return 0;
}

static int do_signal(const struct request *q, struct answer *a, struct err *err)
{
	struct process *r;
	BODY(q, agent_signal);

	r = find(m.exec, err);
	if (!r || process_signal(r, m.signo, m.scope, err) < 0)
		return -1;
	answer_ok(a, q);
	return 0;
}

static int do_resize(const struct request *q, struct answer *a, struct err *err)
{
	struct process *r;
	BODY(q, agent_resize);

	r = find(m.exec, err);
	if (!r || process_resize(r, m.rows, m.cols, err) < 0)
		return -1;
	answer_ok(a, q);
	return 0;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
	if (v < low)
		return low;
	return v > high ? high : v;
}

static int do_attach(const struct request *q, struct answer *a, struct err *err)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r;
	BODY(q, agent_offsets);

	r = find(m.exec, err);
	if (!r)
		return -1;
	r->seen[q->conn][0] = clamp(m.out, r->out[0].start, r->out[0].end);
	r->seen[q->conn][1] = clamp(m.err, r->out[1].start, r->out[1].end);
	r->attached |= bit;
	r->told &= (uint16_t)~bit;
	r->exit_sent &= (uint16_t)~bit;
	r->news &= (uint16_t)~bit;
	if (r->state == PROCESS_DONE)
		r->exit_due |= bit;
	else if (r->out[0].end > r->seen[q->conn][0] || r->out[1].end > r->seen[q->conn][1])
		r->news |= bit;
	agent_conn_wake(q->conn);
	answer_ok(a, q);
	return 0;
}

static void readers_changed(struct process *r)
{
	output_pump_readers_changed(r);
	process_output_moved(r);
}

static int do_detach(const struct request *q, struct answer *a, struct err *err)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r;
	BODY(q, agent_ref);

	r = find(m.exec, err);
	if (!r)
		return -1;
	r->attached &= (uint16_t)~bit;
	r->told &= (uint16_t)~bit;
	r->exit_due &= (uint16_t)~bit;
	readers_changed(r);
	answer_ok(a, q);
	return 0;
}

static int do_consumed(const struct request *q, struct answer *a)
{
	const uint16_t bit = (uint16_t)(1u << q->conn);
	struct process *r;
	BODY(q, agent_offsets);

	a->none = true;
	r = process_table_find(m.exec);
	if (!r || !(r->attached & bit))
		return 0;
	/* Never backwards: what was let go may be overwritten by now. */
	r->seen[q->conn][0] = clamp(m.out, r->seen[q->conn][0], r->out[0].end);
	r->seen[q->conn][1] = clamp(m.err, r->seen[q->conn][1], r->out[1].end);
	r->told &= (uint16_t)~bit;
	readers_changed(r);
	agent_conn_wake(q->conn);
	return 0;
}

static int do_status(const struct request *q, struct answer *a, struct err *err)
{
	struct process *r;
	BODY(q, agent_ref);

	r = find(m.exec, err);
	if (!r)
		return -1;
	answer_proc(a, q->req, r);
	return 0;
}

static int do_forget(const struct request *q, struct answer *a, struct err *err)
{
	struct process *r;
	BODY(q, agent_ref);

	r = find(m.exec, err);
	if (!r)
		return -1;
	if (r->state != PROCESS_DONE)
		return err_set(err, ERR_CONFLICT, "command %llu is running",
			       (unsigned long long)r->id);
	process_forget(r);
	answer_ok(a, q);
	return 0;
}

/* Copies go out: the record may be forgotten before a slow peer has taken the answer. */
static int do_logs(const struct request *q, struct answer *a, struct err *err)
{
	struct agent_logs l = { 0 };
	const char *sentence;
	struct process *r;
	BODY(q, agent_ref);

	r = find(m.exec, err);
	if (!r)
		return -1;
	l.proc = proc_of(r);
	for (int i = 0; i < 2 && r->out[i].log >= 0; i++) {
		a->fds[i] = fcntl(r->out[i].log, F_DUPFD_CLOEXEC, BOOT_FD_END);
		if (a->fds[i] < 0) {
			err_sys(err, errno, "logs of command %llu", (unsigned long long)m.exec);
			answer_close(a);
			return -1;
		}
		a->nfds++;
		l.log_bytes = r->log_bytes;
	}
	sentence = r->job && r->state == PROCESS_DONE ? process_table_sentence(r) : "";
	answer_put(a, AGENT_LOGR, q->req, &l, sizeof(l), sentence,
		   *sentence ? strlen(sentence) + 1 : 0);
	return 0;
}

static int do_file(const struct request *q, struct answer *a, struct err *err)
{
	static struct guest_file_answer f;

	f.fd = -1;
	if (guest_file_request(q->conn, q->type, q->msg, q->len, &f, err) < 0)
		return -1;
	if (f.type == AGENT_FD) {
		answer_put(a, AGENT_FD, q->req, &f.token, sizeof(f.token), NULL, 0);
		a->fds[a->nfds++] = f.fd;
	} else if (f.type == AGENT_STATR) {
		answer_put(a, AGENT_STATR, q->req, &f.st, sizeof(f.st), f.target, f.st.target_len);
	} else {
		answer_ok(a, q);
	}
	return 0;
}

static int dispatch(struct request *q, struct answer *a, struct err *err)
{
	if (!init_binding.bound && q->type != AGENT_BIND)
		return err_set(err, ERR_UNAVAILABLE, "this sandbox is not bound yet");
	switch (q->type) {
	case AGENT_BIND:
		return do_bind(q, a, err);
	case AGENT_HELLO:
		return do_hello(q, a);
	case AGENT_EXEC:
		return do_exec(q, a, err);
	case AGENT_SPARE_SHELL:
		return do_arm(q, a, err);
	case AGENT_STDIN:
		return do_stdin(q, a, err);
	case AGENT_SIGNAL:
		return do_signal(q, a, err);
	case AGENT_RESIZE:
		return do_resize(q, a, err);
	case AGENT_ATTACH:
		return do_attach(q, a, err);
	case AGENT_DETACH:
		return do_detach(q, a, err);
	case AGENT_CONSUMED:
		return do_consumed(q, a);
	case AGENT_LIST:
		a->listing = true;
		a->hdr.req = q->req;
		return 0;
	case AGENT_STATUS:
		return do_status(q, a, err);
	case AGENT_FORGET:
		return do_forget(q, a, err);
	case AGENT_LOGS:
		return do_logs(q, a, err);
	case AGENT_JOB:
		return do_job(q, a, err);
	default:
		return do_file(q, a, err);
	}
}

void request_handle(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
		    struct answer *a)
{
	struct request q = { .conn = conn, .msg = msg, .len = len, .fds = fds, .nfds = nfds };
	const char *bad = agent_msg_problem(msg, len, nfds, true);
	struct agent_hdr h;
	struct err e = { 0 };

	memcpy(&h, msg, sizeof(h));
	q.type = h.type;
	q.req = h.req;
	a->none = true; /* until somebody puts something in */
	a->nfds = 0;
	if (bad) {
		err_set(&e, ERR_INVALID, "bad message: %s", bad);
		answer_error(a, h.req, &e);
	} else if (dispatch(&q, a, &e) < 0) {
		answer_error(a, h.req, &e);
	}
	while (q.nfds)
		close(q.fds[--q.nfds]);
}
