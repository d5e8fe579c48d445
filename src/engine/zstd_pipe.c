/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/zstd_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "sandbox/child_program.h"
#include "sandbox/keeper_spawn.h"
#include "engine/internal.h"

enum { PATH_SIZE = 4096, PIPE_SIZE = 1 << 20 };
enum { BAD_INPUT = 1, NO_SPACE = 2, TOO_LARGE = 4 }; /* statuses of lodge-zstd */

struct pack {
	int pidfd;
	int stderr_fd; /* what it writes to its standard error */
};

static int check_blocks(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return err_sys(err, errno, "descriptor %d", fd);
	if (flags & O_NONBLOCK)
		return err_set(err, ERR_INVALID,
			       "the descriptor of an archive must not be non-blocking");
	return 0;
}

static int new_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	*ret_read = p[0];
	*ret_write = p[1];
	return 0;
}

/* From `in` to `out`, both borrowed. */
static int start(struct pack *p, const char *program, const struct zstd_pipe_opts *o, int in,
		 int out, struct err *err)
{
	char name[] = "lodge-zstd", opt[] = "-d", ratio[16], found[PATH_SIZE];
	char *argv[] = { name, o->back ? opt : NULL, o->back && o->ratio ? ratio : NULL, NULL };
	char *env[] = { NULL };
	auto_close int stderr_fd = -1, ours = -1;

	snprintf(ratio, sizeof(ratio), "%u", o->ratio);
	if (check_blocks(in, err) < 0 || check_blocks(out, err) < 0 ||
	    (!program && keeper_spawn_find(name, found, sizeof(found), err) < 0) ||
	    new_pipe(&ours, &stderr_fd, err) < 0 ||
	    child_program_start(program ? program : found, argv, env,
				(const int[]){ in, out, stderr_fd }, 3, &p->pidfd, err) < 0)
		return -1;
	p->stderr_fd = steal_fd(&ours);
	return 0;
}

/* 0, or the error code of its exit. */
static enum err_code exit_error(const siginfo_t *end)
{
	if (end->si_code != CLD_EXITED)
		return ERR_INTERNAL;
	switch (end->si_status) {
	case 0:
		return ERR_NONE;
	case BAD_INPUT:
		return ERR_INVALID;
	case NO_SPACE:
	case TOO_LARGE:
		return ERR_LIMIT;
	default:
		return ERR_UNAVAILABLE;
	}
}

/* Waits until it exits. */
static int end(struct pack *p, struct err *err)
{
	siginfo_t info = { 0 };
	enum err_code code;
	char text[200];
	ssize_t n;
	int r;

	do
		r = waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	n = read(p->stderr_fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	close(p->pidfd);
	close(p->stderr_fd);
	if (r < 0)
		return err_sys(err, errno, "lodge-zstd");
	code = exit_error(&info);
	if (code == ERR_NONE)
		return 0;
	err_set(err, code, "%s", *text ? text : "lodge-zstd died");
	if (code == ERR_LIMIT && info.si_status == TOO_LARGE)
		err->sys = EMSGSIZE;
	return -1;
}

/* fn failed. Its error may only be a consequence of lodge-zstd's exit: then *err becomes that of
 * lodge-zstd. When it unpacked, a broken output pipe is no cause, only the input is. */
static void choose_error(struct pack *p, bool back, struct err *err)
{
	struct err packing;

	(void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	if (end(p, &packing) == 0 || packing.code == ERR_INTERNAL)
		return;
	if (!back || packing.code == ERR_INVALID || packing.sys == EMSGSIZE)
		*err = packing;
}

int engine_zstd_pipe(struct engine *e, const struct zstd_pipe_opts *o, int fd, zstd_pipe_fn *fn,
		     void *arg, struct err *err)
{
	bool back = o->back;
	auto_close int from = -1, to = -1;
	int *plain = back ? &from : &to, *its = back ? &to : &from, r;
	struct pack p;

	if (new_pipe(&from, &to, err) < 0)
		return -1;
	(void)fcntl(to, F_SETPIPE_SZ, PIPE_SIZE); /* as large as the host allows */
	if (start(&p, e->opts.zstd_program, o, back ? fd : from, back ? to : fd, err) < 0)
		return -1;
	close(steal_fd(its));
	r = fn(arg, *plain, err);
	if (r < 0)
		choose_error(&p, back, err);
	close(steal_fd(plain)); /* it waits for the end of its input */
	return r < 0 ? -1 : end(&p, err);
}
