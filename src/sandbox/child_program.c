/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/child_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"

static int set_attributes(posix_spawn_file_actions_t *fa, posix_spawnattr_t *at, const int *fds,
			  int nfds)
{
	sigset_t none, all;
	int r = 0;

	sigemptyset(&none);
	sigfillset(&all);
	for (int i = 0; !r && i < nfds; i++)
		r = posix_spawn_file_actions_adddup2(fa, fds[i], i);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(fa, nfds);
	if (!r)
		r = posix_spawnattr_setsigmask(at, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(at, &all);
	if (!r)
		r = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	return r;
}

static int spawn(const char *program, char *const argv[], char *const env[], const int *fds,
		 int nfds, pid_t *ret)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int r = posix_spawn_file_actions_init(&fa);

	if (r)
		return r;
	r = posix_spawnattr_init(&at);
	if (!r) {
		r = set_attributes(&fa, &at, fds, nfds);
		if (!r)
			r = posix_spawn(ret, program, &fa, &at, argv, env);
		posix_spawnattr_destroy(&at);
	}
	posix_spawn_file_actions_destroy(&fa);
	return r;
}

/* Duplicates all descriptors above the target range, so that dup2() overwrites none that is still
 * needed. */
static int duplicate_fds(const int *fds, size_t nfds, int *ret, struct err *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return err_sys(err, errno, "/dev/null");
	for (size_t i = 0; i < nfds; i++) {
		ret[i] = fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, (int)nfds);
		if (ret[i] < 0)
			return err_sys(err, errno, "descriptor %d", fds[i]);
	}
	return 0;
}

/* Only this process reaps the child, so its pid cannot have been reused. */
static int open_pidfd(pid_t pid, int *ret, struct err *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), error = errno;

	if (fd >= 0) {
		*ret = fd;
		return 0;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return err_sys(err, error, "pidfd");
}

int child_program_start(const char *program, char *const argv[], char *const env[], const int *fds,
			size_t nfds, int *ret_pidfd, struct err *err)
{
	int moved[CHILD_PROGRAM_FDS_MAX] = { -1, -1, -1, -1 }, r;
	pid_t pid = -1;

	r = duplicate_fds(fds, nfds, moved, err);
	if (r == 0) {
		int error = spawn(program, argv, env, moved, (int)nfds, &pid);

		r = error ? err_sys(err, error, "start %.200s", program) : 0;
	}
	for (size_t i = 0; i < CHILD_PROGRAM_FDS_MAX; i++)
		if (moved[i] >= 0)
			close(moved[i]);
	return r < 0 ? -1 : open_pidfd(pid, ret_pidfd, err);
}
