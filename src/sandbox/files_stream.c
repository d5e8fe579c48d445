/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/files_stream.h"
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/agent_client.h"
#include "sandbox/files_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"

/* The largest record: two paths of AGENT_PATH_MAX and the fixed part. */
enum {
	RECORD_MAX = 2 * AGENT_PATH_MAX + 256,
	CANCEL_CHECK_MS = 500,
	PROGRESS_MS = 50,
	KILL_MS = 5000
};

int files_job_begin(struct sandbox *sb, const struct files_job_spec *spec, struct guest_exec **ret,
		    struct err *err)
{
	struct agent_job job = { .op = spec->op,
				 .flags = spec->flags,
				 .depth = spec->depth,
				 .timeout_ms = spec->timeout_ms,
				 .max_bytes = spec->max_bytes,
				 .max_entries = spec->max_entries };

	return guest_exec_begin_job(sb, job, spec->user, spec->path, spec->fd, spec->ops, spec->arg,
				    ret, err);
}

int files_job_check(struct guest_exec *job, const char *what, struct err *err)
{
	const struct guest_exec_result *r = guest_exec_result(job);
	const struct err *why = guest_exec_error(job);

	if (guest_exec_state(job) == GUEST_EXEC_FAILED ||
	    (why->code && (r->code || r->job_errno))) {
		if (why->sys && why->code == ERR_INTERNAL) /* the code that belongs to the errno */
			err_sys(err, why->sys, "%s", what);
		else
			err->code = why->code;
		err_set(err, err->code, "%s: %s", what, why->msg);
		err->sys = why->sys;
		return -1;
	}
	if (r->hits & AGENT_HIT_TIME)
		return err_set(err, ERR_TIMEOUT, "%s: timed out", what);
	if (r->hits & AGENT_HIT_MEMORY && r->code) {
		err_set(err, ERR_LIMIT, "%s: out of memory", what);
		err->sys = GUEST_EXEC_NO_MEMORY;
		return -1;
	}
	if (r->job_errno)
		return err_sys(err, r->job_errno, "%s", what);
	if (r->signal == SIGXFSZ) {
		err_set(err, ERR_LIMIT, "%s: file size limit reached", what);
		err->sys = EFBIG;
		return -1;
	}
	if (r->signal) /* the guest can kill it: it runs as the same user */
		return err_set(err, ERR_UNAVAILABLE, "%s: killed by signal %d", what, r->signal);
	if (r->code)
		return err_set(err, ERR_INTERNAL, "%s: failed", what);
	return 0;
}

int files_job_run(struct sandbox *sb, const struct files_job_spec *spec, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *job = NULL;

	if (files_job_begin(sb, spec, &job, err) < 0 || guest_exec_wait(job, -1, err) < 0)
		return -1;
	return files_job_check(job, spec->path, err);
}

int files_remove_tree(struct sandbox *sb, const char *user, const char *path, struct err *err)
{
	return files_remove_tree_cancellable(sb, user, path, NULL, NULL, err);
}

int files_remove_tree_cancellable(struct sandbox *sb, const char *user, const char *path,
				  files_cancelled_fn *is_cancelled, void *arg, struct err *err)
{
	struct files_job_spec spec = {
		.op = AGENT_JOB_REMOVE, .user = user, .path = path, .fd = -1
	};
	auto_call(guest_exec_free) struct guest_exec *job = NULL;
	struct err ignored;

	if (files_job_begin(sb, &spec, &job, err) < 0)
		return -1;
	while (guest_exec_wait(job, is_cancelled ? CANCEL_CHECK_MS : -1, err) < 0) {
		if (err->code != ERR_TIMEOUT || *guest_exec_ended(job))
			return -1;
		if (!is_cancelled || !is_cancelled(arg))
			continue;
		if (guest_exec_kill(job, &ignored) == 0)
			(void)guest_exec_wait(job, KILL_MS, &ignored);
		return err_set(err, ERR_UNAVAILABLE, "cancelled: the client disconnected");
	}
	return files_job_check(job, path, err);
}

int files_tar_out(struct sandbox *sb, const char *user, const char *path, int fd, struct err *err)
{
	struct files_job_spec spec = {
		.op = AGENT_JOB_TAR_OUT, .user = user, .path = path, .fd = fd
	};

	return files_job_run(sb, &spec, err);
}

int files_tar_in(struct sandbox *sb, const char *user, const char *path, int fd, unsigned flags,
		 struct err *err)
{
	struct files_job_spec spec = {
		.op = AGENT_JOB_TAR_IN, .flags = flags, .user = user, .path = path, .fd = fd
	};

	return files_job_run(sb, &spec, err);
}

int files_tar_in_progress(struct sandbox *sb, const char *user, const char *path, int fd,
			  files_progress_fn *on_progress, void *arg, uint32_t timeout_ms,
			  struct err *err)
{
	struct files_job_spec spec = { .op = AGENT_JOB_TAR_IN,
				       .timeout_ms = timeout_ms,
				       .user = user,
				       .path = path,
				       .fd = fd };
	auto_call(guest_exec_free) struct guest_exec *job = NULL;

	if (files_job_begin(sb, &spec, &job, err) < 0)
		return -1;
	while (guest_exec_wait(job, PROGRESS_MS, err) < 0) {
		if (err->code != ERR_TIMEOUT || *guest_exec_ended(job))
			return -1;
		on_progress(arg);
	}
	return files_job_check(job, path, err);
}

/* ---- records over a pipe --------------------------------------------------------------------- */

/* The records of a file job. Their lengths are untrusted: the worker runs as the guest's user. */
struct record_reader {
	int fd;
	struct guest_exec *job;
	size_t at, len;
	bool eof;
	_Alignas(8) char buf[2 * RECORD_MAX];
};

static int records_begin(struct record_reader *r, struct sandbox *sb, struct files_job_spec *spec,
			 struct err *err)
{
	auto_close int theirs = -1;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	r->fd = p[0];
	theirs = p[1];
	if (fcntl(r->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "pipe");
	spec->fd = theirs;
	return files_job_begin(sb, spec, &r->job, err);
}

static void records_end(struct record_reader *r)
{
	struct err ignored;

	if (r->job && guest_exec_agent(r->job))
		guest_exec_kill(r->job, &ignored);
	guest_exec_free(r->job);
	close_autop(&r->fd);
}

/* 1: a whole record is at r->buf + r->at, its length in *ret; 0: none yet; -1: invalid. */
static int records_peek(struct record_reader *r, uint32_t *ret, struct err *err)
{
	uint32_t len;

	if (r->len - r->at < sizeof(len))
		return 0;
	memcpy(&len, r->buf + r->at, sizeof(len));
	if (len < sizeof(len) || len > RECORD_MAX)
		return err_set(err, ERR_UNAVAILABLE,
			       "protocol error from sandbox: record of %u bytes", len);
	*ret = len;
	return r->len - r->at >= len;
}

static int records_fill(struct record_reader *r, struct err *err)
{
	ssize_t n;

	memmove(r->buf, r->buf + r->at, r->len - r->at);
	r->len -= r->at;
	r->at = 0;
	n = read(r->fd, r->buf + r->len, sizeof(r->buf) - r->len);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return err_sys(err, errno, "read from the sandbox");
	if (n > 0)
		r->len += (size_t)n;
	r->eof = n == 0;
	return 0;
}

/* 2: the pipe is readable; 1: a message about the job came; 0: timeout. */
static int records_wait(struct record_reader *r, int timeout_ms, struct err *err)
{
	struct agent *a = guest_exec_agent(r->job);
	struct pollfd p[2] = { { .fd = r->fd, .events = POLLIN },
			       { .fd = a ? agent_fd(a) : -1,
				 .events = (short)(a ? agent_events(a) : 0) } };
	struct err ignored;
	int n = poll(p, 2, timeout_ms);

	if (n < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (a && p[1].revents)
		agent_dispatch(a, &ignored); /* errors show in the state of the job */
	return n <= 0 ? 0 : p[0].revents ? 2 : 1;
}

/* 1: a record; 0: end of file or timeout. */
static int records_next(struct record_reader *r, int timeout_ms, uint32_t *ret_len, struct err *err)
{
	for (;;) {
		int whole = records_peek(r, ret_len, err), n;

		if (whole)
			return whole;
		if (r->eof)
			return 0;
		n = records_wait(r, timeout_ms, err);
		if (n < 0)
			return -1;
		if (n == 0 && timeout_ms >= 0)
			return 0;
		if (n == 2 && records_fill(r, err) < 0)
			return -1;
		if (guest_exec_state(r->job) == GUEST_EXEC_FAILED)
			return files_job_check(r->job, "file job", err);
	}
}

/* ---- list ------------------------------------------------------------------------------------ */

static int handle_entry(const char *rec, uint32_t len, files_entry_fn *fn, void *arg,
			struct err *err)
{
	char path[AGENT_PATH_MAX + 1], target[AGENT_PATH_MAX + 1];
	struct agent_entry e;
	const char *bytes = rec + sizeof(e);

	if (len < sizeof(e))
		return agent_protocol_error(err, "record too short");
	memcpy(&e, rec, sizeof(e));
	if (e.path_len > AGENT_PATH_MAX || e.st.target_len > AGENT_PATH_MAX ||
	    len != sizeof(e) + e.path_len + e.st.target_len || memchr(bytes, 0, e.path_len))
		return agent_protocol_error(err, "invalid record");
	memcpy(path, bytes, e.path_len);
	path[e.path_len] = '\0';
	memcpy(target, bytes + e.path_len, e.st.target_len);
	target[e.st.target_len] = '\0';
	return fn(arg, path, &e.st, e.st.target_len ? target : NULL);
}

static int list_entries(struct record_reader *r, const char *path, files_entry_fn *fn, void *arg,
			struct err *err)
{
	uint32_t len = 0;
	int n;

	while ((n = records_next(r, -1, &len, err)) > 0) {
		n = handle_entry(r->buf + r->at, len, fn, arg, err);
		if (n)
			return n;
		r->at += len;
	}
	if (n < 0 || guest_exec_wait(r->job, -1, err) < 0 || files_job_check(r->job, path, err) < 0)
		return -1;
	return r->at != r->len ? agent_protocol_error(err, "incomplete record") : 0;
}

int files_list(struct sandbox *sb, const char *user, const char *path, uint32_t depth,
	       files_entry_fn *fn, void *arg, struct err *err)
{
	struct files_job_spec spec = {
		.op = AGENT_JOB_LIST, .user = user, .path = path, .depth = depth
	};
	struct record_reader *r = calloc(1, sizeof(*r));
	int n;

	if (!r)
		return err_sys(err, ENOMEM, "%s", path);
	r->fd = -1;
	n = records_begin(r, sb, &spec, err);
	if (!n)
		n = list_entries(r, path, fn, arg, err);
	records_end(r);
	free(r);
	return n;
}

/* ---- watch ----------------------------------------------------------------------------------- */

struct files_watch {
	struct record_reader r;
	char path[AGENT_PATH_MAX + 1];
};

void files_watch_free(struct files_watch *w)
{
	if (!w)
		return;
	records_end(&w->r);
	free(w);
}

int files_watch_fd(const struct files_watch *w)
{
	return w->r.fd;
}

int files_watch_next(struct files_watch *w, int timeout_ms, struct files_change *ret,
		     struct err *err)
{
	struct agent_change c = { 0 };
	uint32_t len = 0;
	int n = records_next(&w->r, timeout_ms, &len, err);

	if (n < 0)
		return -1;
	if (n == 0 && !w->r.eof)
		return 0;
	if (n == 0) {
		if (guest_exec_wait(w->r.job, -1, err) < 0 ||
		    files_job_check(w->r.job, "watch", err) < 0)
			return -1;
		return err_set(err, ERR_UNAVAILABLE,
			       "watch ended: the directory was removed or the sandbox stopped it");
	}
	if (len < sizeof(c))
		return agent_protocol_error(err, "record too short");
	memcpy(&c, w->r.buf + w->r.at, sizeof(c));
	if (c.path_len > AGENT_PATH_MAX || len != sizeof(c) + c.path_len ||
	    c.kind < AGENT_CHANGE_READY || c.kind > AGENT_CHANGE_LOST)
		return agent_protocol_error(err, "invalid record");
	memcpy(w->path, w->r.buf + w->r.at + sizeof(c), c.path_len);
	w->path[c.path_len] = '\0';
	w->r.at += len;
	*ret = (struct files_change){ .kind = (enum agent_change_kind)c.kind,
				      .is_dir = c.is_dir != 0,
				      .path = w->path };
	return 1;
}

int files_watch_new(struct sandbox *sb, const char *user, const char *path, bool recursive,
		    struct files_watch **ret, struct err *err)
{
	struct files_job_spec spec = { .op = AGENT_JOB_WATCH,
				       .flags = recursive ? AGENT_JOB_RECURSIVE : 0,
				       .user = user,
				       .path = path };
	auto_call(files_watch_free) struct files_watch *w = calloc(1, sizeof(*w));
	struct files_change c = { 0 };

	if (!w)
		return err_sys(err, ENOMEM, "%s", path);
	w->r.fd = -1;
	if (records_begin(&w->r, sb, &spec, err) < 0)
		return -1;
	if (files_watch_next(w, -1, &c, err) < 0)
		return -1;
	if (c.kind != AGENT_CHANGE_READY)
		return agent_protocol_error(err, "watch did not start");
	*ret = steal_ptr(&w);
	return 0;
}
