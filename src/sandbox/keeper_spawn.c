/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/keeper_spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "sandbox/child_program.h"
#include "sandbox/home_dir.h"
#include "wire/keeper_proto.h"

#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/libexec/lodge"
#endif

enum { PATH_SIZE = 4096 };

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

/* `name` in the directory of the file `beside`. */
static bool find_next_to(const char *beside, const char *name, char *ret, size_t size)
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
		if (find_next_to(self, name, ret, size))
			return 0;
	}
	if (dladdr(&here, &info) && info.dli_fname && realpath(info.dli_fname, lib) &&
	    find_next_to(lib, name, ret, size))
		return 0;
	if (find_next_to(LIBEXECDIR "/", name, ret, size))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		       "%s: not found next to this program or in %s; reinstall lodge", name,
		       LIBEXECDIR);
}

int keeper_spawn(const char *program, const char *home, bool oneshot, const char *closed,
		 int *ret_fd, int *ret_pidfd, struct err *err)
{
	char found[PATH_SIZE], name[] = "lodge-keeper", opt_home[] = "--home",
			       opt_once[] = "--oneshot", opt_closed[] = "--closed",
			       dir[HOME_DIR_SIZE], id[40];
	char *argv[] = { name,
			 opt_home,
			 dir,
			 oneshot ? opt_once : closed ? opt_closed : NULL,
			 closed ? id : NULL,
			 NULL };
	auto_close int ours = -1, theirs = -1;
	int sv[2];

	if (!home || home[0] != '/' || strlen(home) >= sizeof(dir))
		return err_set(err, ERR_INVALID, "data directory must be an absolute path");
	home_dir_keeper(home, dir);
	snprintf(id, sizeof(id), "%s", closed ? closed : "");
	if (!program) {
		if (keeper_spawn_find(name, found, sizeof(found), err) < 0)
			return -1;
		program = found;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, errno, "socketpair");
	ours = sv[0];
	theirs = sv[1];
	if (child_program_start(
		    program, argv, environ,
		    (const int[]){ -1, -1, fcntl(STDERR_FILENO, F_GETFD) < 0 ? -1 : STDERR_FILENO,
				   theirs },
		    KEEPER_FD + 1, ret_pidfd, err) < 0)
		return -1;
	*ret_fd = steal_fd(&ours);
	return 0;
}
