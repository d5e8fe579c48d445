/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/keeper_starter.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd_message.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_spawn.h"

/* The reply to a request of one byte is a struct err. Without an error it comes with a socket and a
 * pidfd. */
static int send_reply(int sock, const char *home, const char *id)
{
	auto_close int fd = -1, pidfd = -1;
	struct err a = { 0 };
	bool good = keeper_spawn(NULL, home, false, id, &fd, &pidfd, &a) == 0;

	return fd_message_send(sock, &a, sizeof(a), (const int[]){ fd, pidfd }, good ? 2 : 0);
}

static _Noreturn void serve(int sock, const char *home, const char *id)
{
	char byte;
	size_t nfds;

	(void)prctl(PR_SET_NAME, "lodged-starter");
	signal(SIGHUP, SIG_IGN);
	while (fd_message_recv(sock, &byte, sizeof(byte), NULL, 0, &nfds) == sizeof(byte)) {
		while (waitpid(-1, NULL, WNOHANG) > 0) /* reap earlier keepers */
			;
		if (send_reply(sock, home, id) < 0)
			break;
	}
	_exit(0);
}

int keeper_starter_fork(const char *home, int *ret_fd, struct err *err)
{
	auto_close int ours = -1, theirs = -1;
	char path[HOME_DIR_SIZE], id[40];
	struct stat st;
	int sv[2];
	pid_t pid;

	/* Record its identity now, before another user could replace the directory. */
	home_dir_keeper(home, path);
	if (lstat(path, &st) < 0)
		return err_sys(err, errno, "%s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0)
		return err_set(err, ERR_DENIED, "%s: must be a directory owned by root", path);
	snprintf(id, sizeof(id), "%llx.%llx", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, errno, "socketpair");
	ours = sv[0];
	theirs = sv[1];
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0) {
		int fd = dup2(theirs, STDIN_FILENO);

		/* Keep standard error: the keeper logs to it. */
		close(STDOUT_FILENO);
		(void)close_range(STDERR_FILENO + 1, ~0u, 0);
		serve(fd, home, id);
	}
	*ret_fd = steal_fd(&ours);
	return 0;
}

int keeper_starter_ask(void *arg, int *ret_fd, int *ret_pidfd, struct err *err)
{
	const int *sock = arg;
	struct err a;
	size_t nfds = 0;
	int fds[2], r = fd_message_send(*sock, "", 1, NULL, 0);

	if (r == 0)
		r = fd_message_recv(*sock, &a, sizeof(a), fds, 2, &nfds);
	if (r != (int)sizeof(a))
		return err_set(err, ERR_UNAVAILABLE,
			       "the helper that starts lodge-keeper has exited; restart lodged");
	if (nfds == 2) {
		*ret_fd = fds[0];
		*ret_pidfd = fds[1];
		return 0;
	}
	*err = a;
	return -1;
}
