/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/keeper_spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "wire/keeper.h"

#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/libexec/lodge"
#endif

enum { PATH_SIZE = 4096 };

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

/* `name` in the directory of the file `beside`. */
static bool find_beside(const char *beside, const char *name, char *ret, size_t size)
{
	const char *slash = strrchr(beside, '/');
	int n;

	if (!slash)
		return false;
	n = snprintf(ret, size, "%.*s/%s", (int)(slash - beside), beside, name);
	return n > 0 && (size_t)n < size && is_program(ret);
}

int keeper_spawn_find(const char *name, char *ret, size_t size, struct err *err)
{
	static const char here; /* in liblodge.so, or in the program itself */
	char self[PATH_SIZE], lib[PATH_SIZE];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	Dl_info info;

	if (n > 0) {
		self[n] = '\0';
		if (find_beside(self, name, ret, size))
			return 0;
	}
	if (dladdr(&here, &info) && info.dli_fname && realpath(info.dli_fname, lib) &&
	    find_beside(lib, name, ret, size))
		return 0;
	if (find_beside(LIBEXECDIR "/", name, ret, size))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "%s: not found beside this program nor in %s", name,
		       LIBEXECDIR);
}

static int prepare(posix_spawn_file_actions_t *fa, posix_spawnattr_t *at, int sock)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawn_file_actions_addopen(fa, 0, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_addopen(fa, 1, "/dev/null", O_WRONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(fa, sock, KEEPER_FD);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(fa, KEEPER_FD + 1);
	if (!r)
		r = posix_spawnattr_setsigmask(at, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(at, &all);
	/* Its own session: ^C at the terminal is for the command, not for who cleans up after it.
	 */
	if (!r)
		r = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	return r;
}

static int run(const char *program, char *const argv[], int sock, pid_t *ret)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int r = posix_spawn_file_actions_init(&fa);

	if (r)
		return r;
	r = posix_spawnattr_init(&at);
	if (r) {
		posix_spawn_file_actions_destroy(&fa);
		return r;
	}
	r = prepare(&fa, &at, sock);
	if (!r)
		r = posix_spawn(ret, program, &fa, &at, argv, environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return r;
}

int keeper_spawn(const char *program, const char *home, bool oneshot, int *ret_fd, int *ret_pidfd,
		 struct err *err)
{
	char found[PATH_SIZE], name[] = "lodge-keeper", opt_home[] = "--home",
			       opt_once[] = "--oneshot", dir[PATH_SIZE];
	char *argv[] = { name, opt_home, dir, oneshot ? opt_once : NULL, NULL };
	auto_close int ours = -1, theirs = -1;
	int sv[2], r;
	pid_t pid;

	if (!home || home[0] != '/' || strlen(home) >= sizeof(dir))
		return err_set(err, ERR_INVALID, "the home directory must be an absolute path");
	memcpy(dir, home, strlen(home) + 1);
	if (!program) {
		if (keeper_spawn_find(name, found, sizeof(found), err) < 0)
			return -1;
		program = found;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, errno, "socketpair");
	ours = sv[0];
	theirs = sv[1];
	r = run(program, argv, theirs, &pid);
	if (r)
		return err_sys(err, r, "start %s", program);
	/* Nobody else reaps it, so the pid cannot have been reused. */
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	*ret_fd = steal_fd(&ours);
	return 0;
}
