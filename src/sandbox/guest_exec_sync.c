/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guest_exec_sync.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_internal.h"
#include "sandbox/guest_exec_log.h"
#include "sandbox/sandbox.h"

static int fail_exec(const struct guest_exec *x, struct err *err)
{
	*err = *guest_exec_error(x);
	return -1;
}

int guest_exec_start(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;

	if (guest_exec_begin(sb, spec, &x, err) < 0)
		return -1;
	while (guest_exec_state(x) == GUEST_EXEC_STARTING)
		if (agent_step(guest_exec_agent(x), -1, err) < 0)
			break;
	if (guest_exec_state(x) == GUEST_EXEC_FAILED)
		return fail_exec(x, err);
	if (guest_exec_state(x) == GUEST_EXEC_STARTING)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

int guest_exec_wait(struct guest_exec *x, int timeout_ms, struct err *err)
{
	if (!*guest_exec_ended(x) &&
	    agent_wait(guest_exec_agent(x), guest_exec_ended(x), timeout_ms, err) < 0)
		return -1;
	return guest_exec_state(x) == GUEST_EXEC_FAILED ? fail_exec(x, err) : 0;
}

int guest_exec_kill(struct guest_exec *x, struct err *err)
{
	return *guest_exec_ended(x) ? 0 : guest_exec_signal(x, SIGKILL, AGENT_TO_TREE, err);
}

/* ---- run to completion ----------------------------------------------------------------------- */

static int feed_stdin(struct guest_exec *x, const char *input, size_t len, size_t *at,
		      struct err *err)
{
	size_t n = len - *at < AGENT_DATA_MAX ? len - *at : AGENT_DATA_MAX;

	if (guest_exec_stdin_is_closed(x) || guest_exec_stdin_is_busy(x))
		return 0;
	if (guest_exec_stdin(x, input + *at, n, *at + n == len, err) < 0)
		return -1;
	*at += n;
	return 0;
}

static int collect_stream(struct guest_exec *x, enum guest_exec_stream s, char **ret,
			  size_t *ret_len, struct err *err)
{
	uint64_t at = guest_exec_start_offset(x, s);
	size_t size = (size_t)(guest_exec_end(x, s) - at), len = 0;
	char *buf = malloc(size + 1);
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "output");
	while (len < size && (n = guest_exec_read(x, s, &at, buf + len, size - len)) != 0) {
		if (n < 0) {
			free(buf);
			return err_sys(err, (int)-n, "output");
		}
		len += (size_t)n;
	}
	buf[len] = '\0';
	*ret = buf;
	*ret_len = len;
	return 0;
}

int guest_exec_collect(struct guest_exec *x, struct guest_exec_output *ret, struct err *err)
{
	struct guest_exec_output o = { .result = *guest_exec_result(x),
				       .out_total = guest_exec_end(x, GUEST_EXEC_OUT),
				       .err_total = guest_exec_end(x, GUEST_EXEC_ERR) };

	if (collect_stream(x, GUEST_EXEC_OUT, &o.out, &o.out_len, err) < 0 ||
	    collect_stream(x, GUEST_EXEC_ERR, &o.err, &o.err_len, err) < 0) {
		guest_exec_output_fini(&o);
		return -1;
	}
	if (o.out_len != o.out_total || o.err_len != o.err_total)
		o.result.hits |= AGENT_HIT_OUTPUT;
	*ret = o;
	return 0;
}

int guest_exec_run(struct sandbox *sb, const struct guest_exec_spec *spec, const void *input,
		   size_t input_len, struct guest_exec_output *ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	struct guest_exec_spec own = *spec;
	size_t at = 0;

	own.stdin_open = input != NULL;
	own.hold = false;
	if (guest_exec_begin(sb, &own, &x, err) < 0)
		return -1;
	while (!*guest_exec_ended(x)) {
		if (feed_stdin(x, input, input_len, &at, err) < 0)
			return -1;
		if (agent_step(guest_exec_agent(x), -1, err) < 0 && !*guest_exec_ended(x))
			return -1;
	}
	if (guest_exec_state(x) == GUEST_EXEC_FAILED)
		return fail_exec(x, err);
	return guest_exec_collect(x, ret, err);
}

void guest_exec_output_fini(struct guest_exec_output *o)
{
	free(o->out);
	free(o->err);
	*o = (struct guest_exec_output){ 0 };
}

/* ---- adoption -------------------------------------------------------------------------------- */

enum { ADOPT_MS = 15 * 1000 };

struct adoption {
	struct guest_exec *x;
	bool done;
	struct err err;
};

static void fail_adoption(struct adoption *ad, const struct err *why)
{
	if (!ad->done) {
		ad->done = true;
		ad->err = *why;
	}
}

static bool is_expected_reply(struct adoption *ad, const void *msg, enum agent_type want,
			      const struct err *err)
{
	struct agent_hdr hdr;
	struct err other;

	if (!msg) {
		fail_adoption(ad, err);
		return false;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == want)
		return true;
	agent_protocol_error(&other, "unexpected reply type");
	fail_adoption(ad, &other);
	return false;
}

static void on_attached(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	(void)len, (void)fds;
	is_expected_reply(arg, msg, AGENT_OK, err);
}

/* The agent client has checked the ranges and the logs. */
static void take_logs(struct guest_exec *x, const struct agent_logs *l, int *fds, const char *text)
{
	const struct agent_progress *at = &l->proc.exit.at;
	struct err ignored;

	x->adopting = false;
	x->log_bytes = l->log_bytes;
	x->pid = l->proc.pid;
	x->pty = (l->proc.flags & AGENT_PTY) != 0;
	for (int i = 0; i < GUEST_EXEC_STREAMS; i++)
		x->streams[i].fd = steal_fd(&fds[i]);
	x->state = GUEST_EXEC_RUNNING;
	if (!(l->proc.flags & AGENT_STDIN_OPEN))
		x->stdin_open = x->stdin_busy = false;
	if (l->proc.state == AGENT_EXITED) {
		guest_exec_set_result(x, &l->proc.exit, text);
		return;
	}
	guest_exec_advance(x, at);
	/* CONSUMED also acknowledges an OUTPUT that arrived during the adoption, so that the next
	 * one is sent. */
	if (x->hold)
		guest_exec_consumed(x, at->out_start, at->err_start, &ignored);
	else
		guest_exec_consumed(x, at->out_end, at->err_end, &ignored);
}

static void on_logs(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct adoption *ad = arg;
	struct agent_logs l;
	struct err other;

	if (!is_expected_reply(ad, msg, AGENT_LOGR, err) || ad->done)
		return;
	memcpy(&l, (const char *)msg + sizeof(struct agent_hdr), sizeof(l));
	if (l.proc.exec != ad->x->id) {
		agent_protocol_error(&other, "reply for another command");
		fail_adoption(ad, &other);
		return;
	}
	take_logs(ad->x, &l, fds, agent_msg_string(msg, len, 0));
	ad->done = true;
}

/* Attach first, so that the log keeps its output until it is consumed. */
static int send_requests(struct agent *a, struct adoption *ad, struct err *err)
{
	struct agent_offsets from_the_start = { .exec = ad->x->id };
	struct agent_ref ref = { .exec = ad->x->id };
	struct agent_part attach = { &from_the_start, sizeof(from_the_start) },
			  logs = { &ref, sizeof(ref) };

	if (agent_send(a, AGENT_ATTACH, &attach, 1, NULL, 0, on_attached, ad, err) < 0 ||
	    guest_exec_probe_stdin(ad->x, err) < 0)
		return -1;
	return agent_send(a, AGENT_LOGS, &logs, 1, NULL, 0, on_logs, ad, err);
}

int guest_exec_adopt(struct sandbox *sb, uint64_t id, bool hold, const struct guest_exec_ops *ops,
		     void *arg, struct guest_exec **ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	struct agent *a = sandbox_agent(sb);
	struct adoption ad = { 0 };
	int r;

	/* No callbacks before the caller has the handle. */
	if (guest_exec_alloc(sb, id, NULL, NULL, &x, err) < 0)
		return -1;
	x->adopting = true;
	x->hold = hold;
	ad.x = x;
	r = send_requests(a, &ad, err);
	if (r == 0)
		r = agent_wait(a, &ad.done, ADOPT_MS, err);
	agent_cancel(a, &ad);
	if (r < 0)
		return -1;
	hook_crash("exec:adopt");
	if (ad.err.code || x->state == GUEST_EXEC_FAILED) {
		*err = ad.err.code ? ad.err : x->err;
		return -1;
	}
	if (ops)
		x->ops = *ops;
	x->arg = arg;
	*ret = steal_ptr(&x);
	return 0;
}
