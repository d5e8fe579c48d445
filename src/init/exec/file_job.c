/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/file_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/exec/process.h"
#include "init/core/passwd.h"
#include "init/files/file_job_op.h"

static struct file_job job; /* the worker copies it when it forks */

static const struct {
	int (*run)(const struct file_job *j, struct err *err);
	const char *name;
} operations[] = {
#define OPERATION(op, fn, name) [AGENT_JOB_##op] = { fn, name },
	FILE_JOBS(OPERATION)
#undef OPERATION
};

static void run_worker(void *arg)
{
	const struct file_job *j = arg;
	struct file_job_error out = { 0 };
	struct err err = { 0 };

	/* A closed pipe is reported as an error, not by a signal. */
	signal(SIGPIPE, SIG_IGN);
	if (operations[j->m.op].run(j, &err) == 0)
		_exit(0);
	out.sys = err.sys;
	out.code = err.code;
	memcpy(out.msg, err.msg, sizeof(out.msg));
	(void)!write(FILE_JOB_ERROR_FD, &out, sizeof(out));
	_exit(1);
}

static int launch_worker(struct process *r, const struct passwd_user *u, int fd, struct err *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct spawn s = {
		.cred = &u->cred,
		.cwd = "",
		.home = u->home,
		.stdio = { null, null, null },
		.text_fd = -1,
		.worker = run_worker,
		.arg = &job,
		.keep = { fd, -1 },
	};
	int p[2], ret;

	if (null < 0 || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(err, errno, "descriptors of the file job");
	r->error_fd = p[0];
	s.keep[1] = p[1];
	ret = process_launch(r, 'x', &s, err);
	close(p[1]);
	return ret;
}

int file_job_start(uint8_t conn, const void *msg, size_t len, int fd, struct agent_started *ret,
		   struct err *err)
{
	auto_close int own_fd = fd;
	char shown[AGENT_PATH_MAX + 16];
	const char *path = agent_msg_string(msg, len, 1);
	struct passwd_user u;
	struct process *r;
	int n;

	memcpy(&job.m, (const char *)msg + sizeof(struct agent_hdr), sizeof(job.m));
	memcpy(job.path, path, strlen(path) + 1);
	if (passwd_resolve(agent_msg_string(msg, len, 0), &u, err) < 0)
		return -1;
	if ((job.m.flags & AGENT_JOB_OWNERS) && !(init_binding.root_class && u.cred.uid == 0))
		return err_set(err, ERR_DENIED,
			       "keeping file owners needs a root user in the sandbox");
	r = process_new(job.m.exec, err);
	if (!r)
		return -1;
	r->is_file_job = true;
	r->attached = (uint16_t)(1u << conn);
	n = snprintf(shown, sizeof(shown), "%s", operations[job.m.op].name);
	memcpy(shown + n + 1, path, strlen(path) + 1);
	process_table_set_argv(r, shown, 2);
	if (launch_worker(r, &u, own_fd, err) < 0) {
		process_release(r);
		return -1;
	}
	process_activate(r, job.m.timeout_ms);
	*ret = (struct agent_started){ .exec = r->id, .pid = r->pid };
	return 0;
}

void file_job_ended(struct process *r)
{
	struct file_job_error e;
	char *sentence = process_table_message(r);

	sentence[0] = 0;
	if (r->error_fd < 0)
		return;
	if (read(r->error_fd, &e, sizeof(e)) == (ssize_t)sizeof(e)) {
		r->exit.job_errno = e.sys ? e.sys : (e.code == ERR_LIMIT ? EFBIG : EINVAL);
		e.msg[sizeof(e.msg) - 1] = 0;
		memcpy(sentence, e.msg, sizeof(e.msg));
	} else if (r->exit.code > 0) {
		r->exit.job_errno = EPERM;
		snprintf(sentence, INIT_MESSAGE_SIZE, "cannot start the file job");
	}
	close(r->error_fd);
	r->error_fd = -1;
}
