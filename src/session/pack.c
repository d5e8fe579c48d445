/* SPDX-License-Identifier: Apache-2.0 */
#include "session/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "sandbox/keeper_spawn.h"

enum { PATH_SIZE = 4096, BAD_INPUT = 1, NO_ROOM = 2 }; /* statuses of lodge-zstd */

/* A copy that is none of the three the child puts in place one after the other. */
static int move_up(int fd, int *ret, struct err *err)
{
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return *ret < 0 ? err_sys(err, errno, "descriptor %d", fd) : 0;
}

static int prepare(posix_spawn_file_actions_t *fa, posix_spawnattr_t *at, const int fds[3])
{
	sigset_t none, all;
	int r = 0;

	sigemptyset(&none);
	sigfillset(&all);
	for (int i = 0; !r && i < 3; i++)
		r = posix_spawn_file_actions_adddup2(fa, fds[i], i);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(fa, STDERR_FILENO + 1);
	if (!r)
		r = posix_spawnattr_setsigmask(at, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(at, &all);
	if (!r) /* a session of its own: ^C at a terminal is not for it */
		r = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	return r;
}

static int spawn(const char *program, bool back, const int fds[3], pid_t *ret)
{
	char name[] = "lodge-zstd", opt[] = "-d";
	char *argv[] = { name, back ? opt : NULL, NULL }, *env[] = { NULL };
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int r = posix_spawn_file_actions_init(&fa);

	if (r)
		return r;
	r = posix_spawnattr_init(&at);
	if (!r) {
		r = prepare(&fa, &at, fds);
		if (!r)
			r = posix_spawn(ret, program, &fa, &at, argv, env);
		posix_spawnattr_destroy(&at);
	}
	posix_spawn_file_actions_destroy(&fa);
	return r;
}

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

int pack_start(struct pack *p, bool back, int in, int out, struct err *err)
{
	auto_close int from = -1, to = -1, says = -1, ours = -1;
	char program[PATH_SIZE];
	int pair[2], r;
	pid_t pid;

	if (check_blocks(in, err) < 0 || check_blocks(out, err) < 0 ||
	    keeper_spawn_find("lodge-zstd", program, sizeof(program), err) < 0)
		return -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	ours = pair[0];
	says = pair[1];
	if (says <= STDERR_FILENO) {
		int low = says;

		r = move_up(low, &says, err);
		close(low);
		if (r < 0)
			return -1;
	}
	if (move_up(in, &from, err) < 0 || move_up(out, &to, err) < 0)
		return -1;
	r = spawn(program, back, (const int[]){ from, to, says }, &pid);
	if (r)
		return err_sys(err, r, "start %.200s", program);
	/* nobody else reaps it, so the pid cannot have been reused */
	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0) {
		r = errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_sys(err, r, "pidfd");
	}
	p->says = steal_fd(&ours);
	return 0;
}

static void forget(struct pack *p)
{
	close(p->pidfd);
	close(p->says);
	*p = (struct pack)PACK_NONE;
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

int pack_end(struct pack *p, struct err *err)
{
	siginfo_t end = { 0 };
	char text[200];
	enum err_code code;
	ssize_t n;
	int r;

	do
		r = waitid(P_PIDFD, (id_t)p->pidfd, &end, WEXITED);
	while (r < 0 && errno == EINTR);
	n = read(p->says, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	forget(p);
	if (r < 0)
		return err_sys(err, errno, "lodge-zstd");
	code = judge(&end);
	if (code == ERR_NONE)
		return 0;
	return err_set(err, code, "%s", *text ? text : "lodge-zstd died");
}

void pack_kill(struct pack *p)
{
	struct err ignored;

	if (p->pidfd < 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	(void)pack_end(p, &ignored);
}
