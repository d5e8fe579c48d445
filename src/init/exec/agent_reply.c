/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/agent_reply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "init/exec/output_pump.h"
#include "init/exec/process_table.h"

void agent_reply_put(struct agent_reply *a, uint32_t type, uint32_t req, const void *fixed,
		     size_t fixed_len, const void *tail, size_t tail_len)
{
	const size_t available = sizeof(a->bytes) - sizeof(a->hdr) - fixed_len;

	if (tail_len > available)
		tail_len = available;
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

void agent_reply_ok(struct agent_reply *a, uint32_t req)
{
	agent_reply_put(a, AGENT_OK, req, NULL, 0, NULL, 0);
}

void agent_reply_error(struct agent_reply *a, uint32_t req, const struct err *err)
{
	struct agent_error e = { .code = err->code, .sys = err->sys };

	agent_reply_put(a, AGENT_ERROR, req, &e, sizeof(e), err->msg, strlen(err->msg) + 1);
}

void agent_reply_close(struct agent_reply *a)
{
	while (a->nfds)
		close(a->fds[--a->nfds]);
}

static struct agent_proc describe_process(const struct process *r)
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

void agent_reply_proc(struct agent_reply *a, uint32_t req, struct process *r)
{
	struct agent_proc p = describe_process(r);

	agent_reply_put(a, AGENT_PROC, req, &p, sizeof(p), process_table_text(r), r->text_len);
}

int agent_reply_logs(struct agent_reply *a, uint32_t req, struct process *r, struct err *err)
{
	struct agent_logs l = { .proc = describe_process(r) };
	const char *message;

	for (int i = 0; i < 2 && r->out[i].log >= 0; i++) {
		a->fds[i] = fcntl(r->out[i].log, F_DUPFD_CLOEXEC, BOOT_FD_END);
		if (a->fds[i] < 0) {
			err_sys(err, errno, "logs of command %llu", (unsigned long long)r->id);
			agent_reply_close(a);
			return -1;
		}
		a->nfds++;
		l.log_bytes = r->log_bytes;
	}
	message = r->is_file_job && r->state == PROCESS_DONE ? process_table_message(r) : "";
	agent_reply_put(a, AGENT_LOGR, req, &l, sizeof(l), message,
			*message ? strlen(message) + 1 : 0);
	return 0;
}
