/* SPDX-License-Identifier: Apache-2.0 */
#include "session/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "sandbox/child.h"
#include "sandbox/keeper_spawn.h"

enum { PATH_SIZE = 4096, BAD_INPUT = 1, NO_ROOM = 2 }; /* statuses of lodge-zstd */

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

int pack_start(struct pack *p, const char *program, bool back, int in, int out, struct err *err)
{
	char name[] = "lodge-zstd", opt[] = "-d", found[PATH_SIZE];
	char *argv[] = { name, back ? opt : NULL, NULL }, *env[] = { NULL };
	auto_close int says = -1, ours = -1;
	int pair[2];

	if (check_blocks(in, err) < 0 || check_blocks(out, err) < 0 ||
	    (!program && keeper_spawn_find(name, found, sizeof(found), err) < 0))
		return -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	ours = pair[0];
	says = pair[1];
	if (child_start(program ? program : found, argv, env, (const int[]){ in, out, says }, 3,
			&p->pidfd, err) < 0)
		return -1;
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
