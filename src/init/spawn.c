/* SPDX-License-Identifier: Apache-2.0 */
#include "init/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hook.h"
#include "init/path.h"
#include "init/user.h"

/* A child that is to run a program shares this process's memory until then: copying it costs more
 * than everything else here. It has a stack of its own and makes only system calls. Unlike with
 * vfork() the parent can stop waiting: a guest may stop the child in the moment in which it
 * already has the guest's user, and must not stop PID 1 with it. While it waits for the child the
 * parent touches nothing, and PR_SET_DUMPABLE 0, a property of the shared memory, keeps the guest
 * from looking into it. */
static char child_stack[16 * 1024] __attribute__((aligned(64)));
static char child_path[AGENT_PATH_MAX + NAME_MAX + 2];
static int child_tid;

static int child_group(const struct spawn *s, bool joined)
{
	int fd;

	if (s->leaf_fd >= 0 && !joined) {
		fd = openat(s->leaf_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) < 0)
			return -errno;
		close(fd);
	}
	if (init_binding.tasks && write(BOOT_FD_TASKS, "0", 1) < 0)
		return -errno;
	return 0;
}

/* 0, 1, 2 and, where asked for, a few fixed ones above; the rest closes with the exec. */
static int child_stdio(const struct spawn *s)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(s->stdio[i], i) < 0)
			return -errno;
	}
	if (s->text_fd >= 0) {
		if (dup2(s->text_fd, SPAWN_TEXT_FD) < 0)
			return -errno;
		syscall(SYS_close_range, 3, SPAWN_TEXT_FD - 1, 0);
		syscall(SYS_close_range, SPAWN_TEXT_FD + 1, ~0u, 0);
		return 0;
	}
	return 0;
}

static int child_limits(const struct spawn *s)
{
	const struct agent_bind *b = &init_binding.b;
	struct rlimit l;

	/* A worker is ours and needs a descriptor per level of a tree. */
	if (b->open_files && !s->worker) {
		if (getrlimit(RLIMIT_NOFILE, &l) < 0)
			return -errno;
		if (b->open_files < l.rlim_max)
			l.rlim_max = b->open_files;
		l.rlim_cur = l.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &l) < 0)
			return -errno;
	}
	if (b->file_bytes) {
		if (getrlimit(RLIMIT_FSIZE, &l) < 0)
			return -errno;
		if (b->file_bytes < l.rlim_max)
			l.rlim_max = b->file_bytes;
		l.rlim_cur = l.rlim_max;
		if (setrlimit(RLIMIT_FSIZE, &l) < 0)
			return -errno;
	}
	return 0;
}

/* As the user, so that a directory the user may not enter cannot be a working directory. */
static int child_chdir(const struct spawn *s)
{
	int fd = path_openat(AT_FDCWD, s->home, O_PATH | O_DIRECTORY, 0);

	if (fd < 0 || fchdir(fd) < 0)
		(void)!chdir("/");
	if (fd >= 0)
		close(fd);
	if (!s->cwd[0])
		return 0;
	fd = path_openat(AT_FDCWD, s->cwd, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fchdir(fd) < 0)
		return -errno;
	close(fd);
	return 0;
}

static int child_prepare(struct spawn *s, bool joined)
{
	sigset_t none;
	int r;

	if ((r = child_group(s, joined)) < 0)
		return s->step = SPAWN_GROUP, r;
	if (!hook_weak("session") && setsid() < 0)
		return s->step = SPAWN_SESSION, -errno;
	if ((r = child_stdio(s)) < 0)
		return s->step = SPAWN_STDIO, r;
	if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0)
		return s->step = SPAWN_TTY, -errno;
	if ((r = child_limits(s)) < 0)
		return s->step = SPAWN_LIMITS, r;
	umask(022);
	if ((r = user_become(s->cred)) < 0)
		return s->step = SPAWN_USER, r;
	/* The change of user made the shared memory what fs.suid_dumpable says. */
	prctl(PR_SET_DUMPABLE, hook_weak("dumpable"));
	if ((r = child_chdir(s)) < 0)
		return s->step = SPAWN_CWD, r;
	sigemptyset(&none);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, _NSIG / 8);
	return 0;
}

/* Two calls hide what they ask for behind a pointer, where the sandbox's filter cannot look: this
 * process has them, its commands get the older ones instead. Only without no_new_privs, in the
 * root class, there is no way to take them away here. */
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

static const char *env_path(char **envp)
{
	for (; *envp; envp++) {
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

static int try_exec(struct spawn *s, const char *path)
{
	int error;

	execve(path, s->argv, hook_weak("env") ? environ : s->envp);
	error = errno;
	s->step = error == ENOENT && faccessat(AT_FDCWD, path, F_OK, 0) == 0 ? SPAWN_INTERPRETER
									     : SPAWN_EXEC;
	return -error;
}

/* As execvp(3), but a file that is no program is an error, never a script for a shell. */
static int child_search(struct spawn *s)
{
	const char *name = s->argv[0], *dir = env_path(s->envp), *end;
	size_t name_len = strlen(name);
	int r = -ENOENT, one;

	s->step = SPAWN_EXEC;
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
		if (s->step == SPAWN_INTERPRETER ||
		    (one != -ENOENT && one != -ENOTDIR && one != -EACCES))
			return one;
		if (one == -EACCES)
			r = one;
	}
	s->step = SPAWN_EXEC;
	return r;
}

static int child_exec(struct spawn *s)
{
	int r;

	if (!s->bash)
		return child_search(s);
	r = try_exec(s, "/bin/bash");
	if (r == -ENOENT && s->text_fd < 0)
		r = try_exec(s, "/bin/sh");
	return r;
}

static void child_main(struct spawn *s, bool joined)
{
	int r = child_prepare(s, joined);

	if (r == 0) {
		if (s->text_fd < 0 && !hook_weak("closefds"))
			syscall(SYS_close_range, 3, ~0u, 0);
		s->step = SPAWN_FILTER;
		r = child_filter();
		if (r == 0)
			r = child_exec(s);
	}
	s->error = -r;
	syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

static void child_joined(void *s)
{
	child_main(s, true);
}

static void child_unjoined(void *s)
{
	child_main(s, false);
}

/* clone3() or clone() whose child goes on in fn(arg) on its own stack. */
static long clone_call(long nr, long a, long b, long c, long d, void (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;
	register void (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = d;
	register long x8 __asm__("x8") = nr;
	register void (*x9)(void *) __asm__("x9") = fn;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8), "r"(x9), "r"(x10)
			 : "x30", "memory");
	return x0;
#else
#error "spawn: no clone for this machine"
#endif
}

/* A filter that cannot look into clone3's arguments answers ENOSYS; then the child moves itself. */
static bool no_clone3;

static long clone_sharing(struct spawn *s)
{
	const uint64_t flags = CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	struct clone_args a = {
		.flags = flags | (s->leaf_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)child_stack,
		.stack_size = sizeof(child_stack),
		.parent_tid = (uintptr_t)&child_tid,
		.child_tid = (uintptr_t)&child_tid,
		.cgroup = s->leaf_fd >= 0 ? (uint64_t)s->leaf_fd : 0,
	};
	long pid = -ENOSYS;

	if (!no_clone3)
		pid = clone_call(SYS_clone3, (long)&a, sizeof(a), 0, 0, child_joined, s);
	if (pid == -ENOSYS) {
		no_clone3 = true;
		pid = clone_call(SYS_clone, (long)flags | SIGCHLD,
				 (long)(child_stack + sizeof(child_stack)), (long)&child_tid,
				 (long)&child_tid, child_unjoined, s);
	}
	return pid;
}

/* Until the child has let go of the shared memory, by its program or by its end. */
static bool wait_released(pid_t pid, int limit_ms)
{
	const struct timespec slice = { .tv_nsec = 20000000L };
	siginfo_t info;
	int tid;

	for (int waited = 0; (tid = __atomic_load_n(&child_tid, __ATOMIC_ACQUIRE)) != 0;) {
		long r = syscall(SYS_futex, &child_tid, FUTEX_WAIT, tid, &slice, NULL, 0);

		if (r == 0 || errno != ETIMEDOUT)
			continue;
		/* Some kernels leave the word alone in a process that dies dumping. */
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == pid)
			return true;
		waited += 20;
		if (waited >= limit_ms)
			return false;
	}
	return true;
}

pid_t spawn_program(struct spawn *s)
{
	long pid;

	s->step = s->error = 0;
	pid = clone_sharing(s);
	if (pid < 0) {
		s->step = SPAWN_CLONE;
		s->error = (int)-pid;
		return -1;
	}
	if (!wait_released((pid_t)pid, INIT_EXEC_WAIT_MS)) {
		kill((pid_t)pid, SIGKILL);
		wait_released((pid_t)pid, 60 * 1000);
		s->step = SPAWN_STUCK;
		s->error = ETIMEDOUT;
	}
	prctl(PR_SET_DUMPABLE, hook_weak("dumpable"));
	if (!s->error)
		return (pid_t)pid;
	while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

pid_t spawn_fork(int leaf_fd)
{
	struct clone_args a = {
		.flags = leaf_fd >= 0 ? CLONE_INTO_CGROUP : 0,
		.exit_signal = SIGCHLD,
		.cgroup = leaf_fd >= 0 ? (uint64_t)leaf_fd : 0,
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

/* Puts the worker's descriptors at 3 and 4 and closes the rest, whatever numbers they had. */
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

pid_t spawn_worker(struct spawn *s)
{
	pid_t pid = spawn_fork(s->leaf_fd);
	bool joined = !no_clone3;

	if (pid != 0) {
		s->step = SPAWN_CLONE;
		s->error = pid < 0 ? errno : 0;
		return pid;
	}
	if (child_prepare(s, joined) < 0 || worker_fds(s) < 0)
		_exit(126);
	s->worker(s->arg);
	_exit(125);
}

static int explain_exec(const struct spawn *s, struct err *err)
{
	const char *name = s->bash ? "bash" : s->argv[0];

	if (s->step == SPAWN_INTERPRETER)
		err_set(err, ERR_NOT_FOUND, "%s: its interpreter is not there", name);
	else if (s->error == ENOENT || s->error == ENOTDIR)
		err_set(err, ERR_NOT_FOUND, "%s: not found", name);
	else if (s->error == EACCES || s->error == EPERM)
		err_set(err, ERR_DENIED, "%s: permission denied", name);
	else if (s->error == ENOEXEC)
		err_set(err, ERR_INVALID, "%s: not a program", name);
	else if (s->error == E2BIG)
		err_set(err, ERR_LIMIT, "%s: arguments and environment are too long", name);
	else
		return err_sys(err, s->error, "%s", name);
	err->sys = s->error;
	return -1;
}

int spawn_explain(const struct spawn *s, struct err *err)
{
	static const char *const what[] = {
		[SPAWN_CLONE] = "new process",
		[SPAWN_GROUP] = "control group",
		[SPAWN_SESSION] = "new session",
		[SPAWN_STDIO] = "standard descriptors",
		[SPAWN_TTY] = "terminal",
		[SPAWN_LIMITS] = "resource limits",
		[SPAWN_USER] = "change of user",
		[SPAWN_CWD] = "working directory",
		[SPAWN_EXEC] = "program",
		[SPAWN_INTERPRETER] = "interpreter",
		[SPAWN_STUCK] = "start of the program",
		[SPAWN_FILTER] = "system call filter",
	};

	if (s->step == SPAWN_EXEC || s->step == SPAWN_INTERPRETER)
		return explain_exec(s, err);
	if (s->step != SPAWN_CWD)
		return err_sys(err, s->error, "%s", what[s->step]);
	err_sys(err, s->error, "working directory %s", s->cwd);
	if (err->code == ERR_NOT_FOUND)
		err->code = ERR_INVALID;
	return -1;
}
