/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guest_exec_adopt.h"
#include <string.h>

#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec_internal.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"

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
	err_set(&other, ERR_UNAVAILABLE, "protocol error from sandbox: unexpected reply type");
	fail_adoption(ad, &other);
	return false;
}

static void on_attached(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	(void)len;
	(void)fds;
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
		err_set(&other, ERR_UNAVAILABLE,
			"protocol error from sandbox: reply for another command");
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

	if (agent_send(a, AGENT_ATTACH,
		       (struct agent_part[]){ { &from_the_start, sizeof(from_the_start) } }, 1,
		       NULL, 0, on_attached, ad, err) < 0 ||
	    guest_exec_probe_stdin(ad->x, err) < 0)
		return -1;
	return agent_send(a, AGENT_LOGS, (struct agent_part[]){ { &ref, sizeof(ref) } }, 1, NULL, 0,
			  on_logs, ad, err);
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
