/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/agent_sync.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int agent_step(struct agent *a, int timeout_ms, struct err *err)
{
	struct pollfd p = { .fd = agent_fd(a), .events = agent_events(a) };

	if (poll(&p, 1, timeout_ms) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	return agent_dispatch(a, err);
}

int agent_wait(struct agent *a, const bool *done, int timeout_ms, struct err *err)
{
	int64_t end = timeout_ms < 0 ? 0 : clock_mono_ms() + timeout_ms;

	while (!*done) {
		int64_t left = timeout_ms < 0 ? -1 : end - clock_mono_ms();

		if (timeout_ms >= 0 && left <= 0)
			return err_set(err, ERR_TIMEOUT, "sandbox did not respond in time");
		if (agent_step(a, (int)left, err) < 0)
			return *done ? 0 : -1;
	}
	return 0;
}

struct call {
	bool done;
	enum agent_type expected;
	struct agent_reply reply;
	struct err err;
};

static void on_reply(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct call *c = arg;
	struct agent_hdr hdr;

	c->done = true;
	if (!msg) {
		c->err = *err;
		return;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type != c->expected) {
		agent_protocol_error(&c->err, "unexpected reply type");
		return;
	}
	c->reply.msg = malloc(len);
	if (!c->reply.msg) {
		err_sys(&c->err, ENOMEM, "reply from the sandbox");
		return;
	}
	memcpy(c->reply.msg, msg, len);
	c->reply.len = len;
	c->reply.fd = steal_fd(&fds[0]);
}

int agent_call(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, enum agent_type expected, struct agent_reply *ret,
	       struct err *err)
{
	struct call c = { .expected = expected, .reply.fd = -1 };

	if (agent_send(a, type, parts, nparts, fds, nfds, on_reply, &c, err) < 0)
		return -1;
	if (agent_wait(a, &c.done, agent_timeout(a), err) < 0) {
		agent_cancel(a, &c);
		return -1;
	}
	if (!c.reply.msg) {
		*err = c.err;
		return -1;
	}
	if (ret)
		*ret = c.reply;
	else
		agent_reply_fini(&c.reply);
	return 0;
}

void agent_reply_fini(struct agent_reply *ans)
{
	close_autop(&ans->fd);
	free(ans->msg);
	*ans = (struct agent_reply){ .fd = -1 };
}

int agent_hello(struct agent *a, struct agent_hello *ret, struct err *err)
{
	struct agent_reply reply;
	struct agent_hello h;

	if (agent_call(a, AGENT_HELLO, NULL, 0, NULL, 0, AGENT_HELLOR, &reply, err) < 0)
		return -1;
	memcpy(&h, (const char *)reply.msg + sizeof(struct agent_hdr), sizeof(h));
	agent_reply_fini(&reply);
	if (h.version != AGENT_VERSION)
		return err_set(
			err, ERR_UNAVAILABLE,
			"sandbox uses protocol version %u, expected %u; recreate the sandbox",
			h.version, AGENT_VERSION);
	agent_number_from(a, h.last_exec);
	if (ret)
		*ret = h;
	return 0;
}

/* ---- list of commands ----------------------------------------------------------------- */

enum { LIST_MS = 15 * 1000 };

struct listing {
	bool done;
	size_t count;
	struct err err;
	struct agent_proc procs[AGENT_EXECS_MAX];
};

static void on_listed(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct listing *l = arg;
	struct agent_hdr hdr;

	(void)len, (void)fds;
	if (!msg) {
		l->err = *err;
		l->done = true;
		return;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == AGENT_PROC && l->count < AGENT_EXECS_MAX) {
		memcpy(&l->procs[l->count++], (const char *)msg + sizeof(hdr), sizeof(*l->procs));
		return;
	}
	if (hdr.type != AGENT_OK)
		agent_protocol_error(&l->err, "unexpected reply type");
	l->done = true;
}

int agent_list(struct agent *a, agent_proc_fn *fn, void *arg, struct err *err)
{
	auto_free struct listing *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "list of commands");
	if (agent_send(a, AGENT_LIST, NULL, 0, NULL, 0, on_listed, l, err) < 0)
		return -1;
	r = agent_wait(a, &l->done, LIST_MS, err);
	if (r < 0 || l->err.code) {
		agent_cancel(a, l); /* more replies may follow */
		if (r == 0)
			*err = l->err;
		return -1;
	}
	for (size_t i = 0; i < l->count && r == 0; i++)
		r = fn(arg, &l->procs[i]);
	return r;
}
