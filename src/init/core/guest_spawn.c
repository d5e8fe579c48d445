/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/guest_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "init/core/landlock.h"
#include "init/core/guest_path.h"
#include "init/core/passwd.h"

/* A child is a plain fork. Sharing memory with it (CLONE_VM) would be cheaper, but the child joins
 * the guest's memory cgroup before exec, and the OOM killer kills every process that shares the
 * victim's memory: PID 1 too. With vfork() a guest that stops the child would stop PID 1. */
static char child_path[AGENT_PATH_MAX + NAME_MAX + 2];

enum { CLOEXEC_RANGE = 4 }; /* CLOSE_RANGE_CLOEXEC: the report pipe stays open until exec */

struct report { /* from a child that could not exec its program */
	int step, error;
};

static int child_join_cgroup(const struct spawn *s, bool joined)
{
	int r = 0;

	if (s->cgroup_fd >= 0 && !joined)
		r = file_printf_at(s->cgroup_fd, "cgroup.procs", "0");
	if (r == 0 && init_binding.tasks && write(BOOT_FD_TASKS, "0", 1) < 0)
		r = -errno;
	return r;
}

/* Sets up 0, 1, 2 and the text descriptor; exec closes all others. */
static int child_stdio(const struct spawn *s)
{
	for (int i = 0; i < 3; i++)
		if (dup2(s->stdio[i], i) < 0)
			return -errno;
	if (s->text_fd) {
		if (dup2(s->text_fd, GUEST_SPAWN_TEXT_FD) < 0)
			return -errno;
		syscall(SYS_close_range, 3, GUEST_SPAWN_TEXT_FD - 1, CLOEXEC_RANGE);
		syscall(SYS_close_range, GUEST_SPAWN_TEXT_FD + 1, ~0u, CLOEXEC_RANGE);
	}
	return 0;
}

/* Lowers both limits to `max`, never raises them. 0: unchanged. */
static int lower_rlimit(int resource, uint64_t max)
{
	struct rlimit l;

	if (!max)
		return 0;
	if (getrlimit(resource, &l) < 0)
		return -errno;
	if (max < l.rlim_max)
		l.rlim_max = max;
	l.rlim_cur = l.rlim_max;
	return setrlimit(resource, &l) < 0 ? -errno : 0;
}

static int child_limits(const struct spawn *s)
{
	/* Not for workers: they need a descriptor per directory level. */
	int r = s->worker ? 0 : lower_rlimit(RLIMIT_NOFILE, init_binding.b.open_files);

	return r < 0 ? r : lower_rlimit(RLIMIT_FSIZE, init_binding.b.file_bytes);
}

/* Runs as the user, so that the user needs permission to enter the directory. */
static int enter_dir(const char *path)
{
	auto_close int fd = guest_path_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? fd : fchdir(fd) < 0 ? -errno : 0;
}

static int child_chdir(const struct spawn *s)
{
	if (enter_dir(s->home) < 0)
		(void)!chdir("/");
	return s->cwd[0] ? enter_dir(s->cwd) : 0;
}

static int child_prepare(struct spawn *s, bool joined)
{
	sigset_t none;
	int r;

	if ((r = child_join_cgroup(s, joined)) < 0)
		return s->step = GUEST_SPAWN_GROUP, r;
	if (!hook_weak("session") && setsid() < 0)
		return s->step = GUEST_SPAWN_SESSION, -errno;
	if ((r = child_stdio(s)) < 0)
		return s->step = GUEST_SPAWN_STDIO, r;
	if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0)
		return s->step = GUEST_SPAWN_TTY, -errno;
	if ((r = child_limits(s)) < 0)
		return s->step = GUEST_SPAWN_LIMITS, r;
	umask(022);
	if ((r = passwd_switch_user(s->cred)) < 0)
		return s->step = GUEST_SPAWN_USER, r;
	/* Changing the user reset this flag to fs.suid_dumpable. */
	prctl(PR_SET_DUMPABLE, hook_weak("dumpable"));
	if ((r = child_chdir(s)) < 0)
		return s->step = GUEST_SPAWN_CWD, r;
	sigemptyset(&none);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, _NSIG / 8);
	return 0;
}

/* seccomp cannot inspect the arguments of openat2 and clone3, which are behind a pointer.
 * lodge-init needs both; commands get ENOSYS and fall back to the older calls. Without no_new_privs
 * (root class) a filter cannot be installed here. */
static int child_filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	if (init_binding.root_class || hook_weak("seccomp") ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 0;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

const char *guest_spawn_env(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static int try_exec(struct spawn *s, const char *path)
{
	int error;

	execve(path, s->argv, hook_weak("env") ? environ : s->envp);
	error = errno;
	s->step = error == ENOENT && faccessat(AT_FDCWD, path, F_OK, 0) == 0
			  ? GUEST_SPAWN_INTERPRETER
			  : GUEST_SPAWN_EXEC;
	return -error;
}

/* As execvp(3), but ENOEXEC is an error and does not start a shell. */
static int child_search(struct spawn *s)
{
	const char *name = s->argv[0], *dir = guest_spawn_env(s->envp, "PATH"), *end;
	size_t name_len = strlen(name);
	int r = -ENOENT, one;

	if (!dir)
		dir = "/usr/local/bin:/usr/bin:/bin";
	s->step = GUEST_SPAWN_EXEC;
	if (strchr(name, '/') || !name_len)
		return name_len ? try_exec(s, name) : -ENOENT;
	for (; dir; dir = *end ? end + 1 : NULL) {
		size_t n;

		end = strchrnul(dir, ':');
		n = (size_t)(end - dir);
		if (n + name_len + 2 > sizeof(child_path))
			continue;
		memcpy(child_path, dir, n);
		if (!n)
			child_path[n++] = '.';
		child_path[n++] = '/';
		memcpy(child_path + n, name, name_len + 1);
		one = try_exec(s, child_path);
		if (s->step == GUEST_SPAWN_INTERPRETER ||
		    (one != -ENOENT && one != -ENOTDIR && one != -EACCES))
			return one;
		if (one == -EACCES)
			r = one;
	}
	s->step = GUEST_SPAWN_EXEC;
	return r;
}

static int child_exec(struct spawn *s)
{
	static char sh[] = "sh";
	int r = s->bash ? try_exec(s, "/bin/bash") : child_search(s);

	if (r != -ENOENT || !s->or_sh)
		return r;
	s->argv[0] = sh; /* multi-call binaries such as busybox check it */
	return try_exec(s, "/bin/sh");
}

static _Noreturn void child_main(struct spawn *s, bool joined, int report)
{
	struct report failed;
	int r = child_prepare(s, joined);

	if (r == 0 && !s->text_fd && !hook_weak("closefds"))
		syscall(SYS_close_range, 3, ~0u, CLOEXEC_RANGE);
	if (r == 0 && s->landlock) {
		s->step = GUEST_SPAWN_LANDLOCK;
		r = landlock_restrict(s->landlock, s->landlock_required, s->or_sh, s->cred);
	}
	if (r == 0) {
		s->step = GUEST_SPAWN_FILTER;
		r = child_filter();
	}
	if (r == 0)
		r = child_exec(s);
	failed = (struct report){ s->step, -r };
	(void)!write(report, &failed, sizeof(failed));
	_exit(127);
}

/* A seccomp filter may refuse clone3 with ENOSYS. Then the child joins the cgroup by itself. */
static bool no_clone3;

pid_t guest_spawn_fork(int cgroup_fd)
{
	struct clone_args a = {
		.flags = cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
	};
	long pid = -1;

	if (!no_clone3) {
		pid = syscall(SYS_clone3, &a, sizeof(a));
		if (pid >= 0 || errno != ENOSYS)
			return (pid_t)pid;
		no_clone3 = true;
	}
	return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, NULL, NULL, 0L);
}

/* Until the child has exec'ed or reported an error. The wait is bounded, because a guest can stop
 * the child once it runs as the guest's user. */
static void wait_started(struct spawn *s, pid_t pid, int report)
{
	struct pollfd p = { .fd = report, .events = POLLIN };
	struct report r;
	int n;

	do
		n = poll(&p, 1, INIT_EXEC_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		kill(pid, SIGKILL);
		s->step = GUEST_SPAWN_STUCK;
		s->error = ETIMEDOUT;
	} else if (read(report, &r, sizeof(r)) == sizeof(r)) {
		s->step = r.step;
		s->error = r.error;
	}
}

pid_t guest_spawn_program(struct spawn *s)
{
	int report[2];
	pid_t pid;

	s->step = GUEST_SPAWN_CLONE;
	s->error = 0;
	if (pipe2(report, O_CLOEXEC) < 0)
		return s->error = errno, -1;
	pid = guest_spawn_fork(s->cgroup_fd);
	if (pid == 0)
		child_main(s, !no_clone3, report[1]);
	if (pid < 0)
		s->error = errno;
	close(report[1]);
	if (pid > 0)
		wait_started(s, pid, report[0]);
	close(report[0]);
	if (!s->error)
		return pid;
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

/* Moves the worker's descriptors to 3 and 4 and closes all others. */
static int worker_fds(struct spawn *s)
{
	int high[2] = { -1, -1 };

	for (int i = 0; i < 2; i++) {
		if (s->keep[i] >= 0)
			high[i] = fcntl(s->keep[i], F_DUPFD_CLOEXEC, 16);
		if (s->keep[i] >= 0 && high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 2; i++) {
		close(3 + i);
		if (high[i] >= 0 && dup3(high[i], 3 + i, O_CLOEXEC) < 0)
			return -errno;
	}
	syscall(SYS_close_range, 5, ~0u, 0);
	return 0;
}

pid_t guest_spawn_worker(struct spawn *s)
{
	pid_t pid = guest_spawn_fork(s->cgroup_fd);
	bool joined = !no_clone3;

	if (pid != 0) {
		s->step = GUEST_SPAWN_CLONE;
		s->error = pid < 0 ? errno : 0;
		return pid;
	}
	if (child_prepare(s, joined) < 0 || worker_fds(s) < 0)
		_exit(126);
	s->worker(s->arg);
	_exit(125);
}

/* The file is there and is no program that can be executed, for another reason than its format. */
static bool is_of_file(int error)
{
	return error == ELOOP || error == ENAMETOOLONG || error == EISDIR || error == ETXTBSY ||
	       error == EINVAL || error == ELIBBAD;
}

/* The engine answers a program that cannot be executed with 127 or 126, and tells it by code and
 * sys (status_of_program()): ENOENT and ENOTDIR with ERR_NOT_FOUND, EACCES and EPERM with
 * ERR_DENIED, ENOEXEC with ERR_INVALID. No other failure may look like one of these. */
static int explain_exec(const struct spawn *s, struct err *err)
{
	const char *name = s->argv[0];

	if (s->step == GUEST_SPAWN_INTERPRETER)
		err_set(err, ERR_NOT_FOUND, "%s: interpreter not found (check its #! line)", name);
	else if (s->error == ENOENT || s->error == ENOTDIR)
		err_set(err, ERR_NOT_FOUND, "%s: not found", name);
	else if (s->error == EACCES || s->error == EPERM)
		err_set(err, ERR_DENIED, "%s: permission denied", name);
	else if (s->error == ENOEXEC)
		err_set(err, ERR_INVALID, "%s: not an executable program (exec format error)",
			name);
	else if (s->error == E2BIG)
		err_set(err, ERR_LIMIT,
			"%s: arguments and environment are too long; pass the data in a file",
			name);
	else
		err_sys(err, s->error, "%s", name);
	err->sys = s->error;
	if (is_of_file(s->error)) {
		err->code = ERR_INVALID;
		err->sys = ENOEXEC;
	}
	return -1;
}

int guest_spawn_explain(const struct spawn *s, struct err *err)
{
	static const char *const what[] = {
		[GUEST_SPAWN_CLONE] = "new process",
		[GUEST_SPAWN_GROUP] = "cgroup",
		[GUEST_SPAWN_SESSION] = "new session",
		[GUEST_SPAWN_STDIO] = "standard descriptors",
		[GUEST_SPAWN_TTY] = "terminal",
		[GUEST_SPAWN_LIMITS] = "resource limits",
		[GUEST_SPAWN_USER] = "switch to the user",
		[GUEST_SPAWN_LANDLOCK] = "Landlock rules",
		[GUEST_SPAWN_STUCK] = "start of the program",
		[GUEST_SPAWN_FILTER] = "system call filter",
	};

	if (s->step == GUEST_SPAWN_EXEC || s->step == GUEST_SPAWN_INTERPRETER)
		return explain_exec(s, err);
	if (s->step == GUEST_SPAWN_LANDLOCK && s->error == ENOSYS)
		return err_set(err, ERR_DENIED,
			       "policy requires Landlock (enforce: require), but this kernel does "
			       "not support it");
	if (s->step == GUEST_SPAWN_CWD)
		err_sys(err, s->error, "working directory %s", s->cwd);
	else
		err_sys(err, s->error, "%s", what[s->step]);
	if (err->code == ERR_NOT_FOUND || err->code == ERR_DENIED)
		err->code = s->step == GUEST_SPAWN_CWD ? ERR_INVALID : ERR_INTERNAL;
	return -1;
}
