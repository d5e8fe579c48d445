/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/zstd_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "sandbox/child_program.h"
#include "sandbox/keeper_spawn.h"
#include "engine/internal.h"

enum { PATH_SIZE = 4096, PIPE_WANTED = 1 << 20 };
enum { BAD_INPUT = 1, NO_ROOM = 2 }; /* statuses of lodge-zstd */

struct pack {
	int pidfd;
	int says; /* what it writes to its standard error */
};

static int check_blocks(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return err_sys(err, errno, "descriptor %d", fd);
	if (flags & O_NONBLOCK)
		return err_set(err, ERR_INVALID,
			       "the descriptor of an archive must not be "
			       "non-blocking");
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
static int start(struct pack *p, const char *program, bool back, int in, int out, struct err *err)
{
	char name[] = "lodge-zstd", opt[] = "-d", found[PATH_SIZE];
	char *argv[] = { name, back ? opt : NULL, NULL }, *env[] = { NULL };
	auto_close int says = -1, ours = -1;

	if (check_blocks(in, err) < 0 || check_blocks(out, err) < 0 ||
	    (!program && keeper_spawn_find(name, found, sizeof(found), err) < 0) ||
	    new_pipe(&ours, &says, err) < 0 ||
	    child_program_start(program ? program : found, argv, env,
				(const int[]){ in, out, says }, 3, &p->pidfd, err) < 0)
		return -1;
	p->says = steal_fd(&ours);
	return 0;
}

/* 0, or an error code of what it said. */
static enum err_code judge(const siginfo_t *end)
{
	if (end->si_code != CLD_EXITED)
		return ERR_INTERNAL;
	switch (end->si_status) {
	case 0:
		return ERR_NONE;
	case BAD_INPUT:
		return ERR_INVALID;
	case NO_ROOM:
		return ERR_LIMIT;
	default:
		return ERR_UNAVAILABLE;
	}
}

/* Waits for its end. */
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
	n = read(p->says, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	close(p->pidfd);
	close(p->says);
	if (r < 0)
		return err_sys(err, errno, "lodge-zstd");
	code = judge(&info);
	if (code == ERR_NONE)
		return 0;
	return err_set(err, code, "%s", *text ? text : "lodge-zstd died");
}

/* fn failed. One of them is the cause, and the other only knows that nobody reads any more, or that
 * nothing more comes: lodge-zstd, if it had ended by itself with something to say. Unpacking, that
 * nobody took what it wrote is nothing to say. */
static void blame(struct pack *p, bool back, struct err *err)
{
	struct err packing;

	(void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	if (end(p, &packing) == 0 || packing.code == ERR_INTERNAL)
		return;
	if (!back || packing.code == ERR_INVALID)
		*err = packing;
}

int zstd_pipe_run(const char *program, bool back, int fd, zstd_pipe_fn *fn, void *arg,
		  struct err *err)
{
	auto_close int from = -1, to = -1;
	int *plain = back ? &from : &to, *its = back ? &to : &from, r;
	struct pack p;

	if (new_pipe(&from, &to, err) < 0)
		return -1;
	(void)fcntl(to, F_SETPIPE_SZ, PIPE_WANTED); /* as large as the host lets us have it */
	if (start(&p, program, back, back ? fd : from, back ? to : fd, err) < 0)
		return -1;
	close(steal_fd(its));
	r = fn(arg, *plain, err);
	if (r < 0)
		blame(&p, back, err);
	close(steal_fd(plain)); /* what it waits for */
	return r < 0 ? -1 : end(&p, err);
}

int engine_zstd_pipe(struct engine *e, bool back, int fd, zstd_pipe_fn *fn, void *arg,
		     struct err *err)
{
	return zstd_pipe_run(e->opts.zstd_program, back, fd, fn, arg, err);
}
