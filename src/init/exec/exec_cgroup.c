/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/exec_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "init/core/init_state.h"

enum { DROPPED_MAX = 1024 };

/* Cgroups of forgotten commands whose children still run. If this is full, the directory stays
 * until the keeper removes the sandbox. */
static struct exec_cgroup dropped[DROPPED_MAX];
static unsigned ndropped;

int exec_cgroup_make(struct exec_cgroup *cg, char prefix, uint64_t id, struct err *err)
{
	int fd = -1;

	snprintf(cg->name, sizeof(cg->name), "%c%llu", prefix, (unsigned long long)id);
	if (mkdirat(BOOT_FD_CGROUP, cg->name, 0755) == 0 || errno == EEXIST)
		fd = openat(BOOT_FD_CGROUP, cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err_sys(err, errno, "cgroup %s", cg->name);
		exec_cgroup_drop(cg);
		return -1;
	}
	/* If this cgroup counts memory, the OOM killer must end the command as a whole. */
	file_printf_at(fd, "memory.oom.group", "1");
	return fd;
}

static int open_file(const struct exec_cgroup *cg, const char *file, int flags)
{
	char path[64];

	if (!cg->name[0])
		return -1;
	snprintf(path, sizeof(path), "%s/%s", cg->name, file);
	return openat(BOOT_FD_CGROUP, path, flags | O_CLOEXEC);
}

static uint64_t read_counter(int fd, const char *name)
{
	char text[2048];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t v;

	text[n > 0 ? n : 0] = 0;
	return file_number_in(text, name, &v) < 0 ? UINT64_MAX : v;
}

uint64_t exec_cgroup_counter(const struct exec_cgroup *cg, const char *file, const char *name)
{
	auto_close int fd = open_file(cg, file, O_RDONLY);

	return fd < 0 ? UINT64_MAX : read_counter(fd, name);
}

uint64_t exec_cgroup_oom_kills(void)
{
	uint64_t v = init_binding.oom ? read_counter(BOOT_FD_OOM, "oom_kill") : 0;

	return v == UINT64_MAX ? 0 : v;
}

bool exec_cgroup_oom_killed(const struct exec_cgroup *cg, uint64_t before)
{
	uint64_t own = exec_cgroup_counter(cg, "memory.events", "oom_kill");

	return own != UINT64_MAX ? own > 0 : exec_cgroup_oom_kills() > before;
}

uint64_t exec_cgroup_forks_refused(void)
{
	uint64_t v = init_binding.pids ? read_counter(BOOT_FD_PIDS, "max") : 0;

	return v == UINT64_MAX ? 0 : v;
}

static int kill_cgroup(const struct exec_cgroup *cg)
{
	auto_close int fd = open_file(cg, "cgroup.kill", O_WRONLY);

	return fd < 0 || write(fd, "1", 1) < 0 ? -errno : 1;
}

/* One pass. A child forked during the pass can miss the signal, which is also true of kill(-pgid)
 * for everything but SIGKILL. */
static int signal_pass(const struct exec_cgroup *cg, int signo)
{
	auto_close int fd = open_file(cg, "cgroup.procs", O_RDONLY);
	char text[4096];
	long pid = 0;
	int sent = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			if (pid > 1 && kill((pid_t)pid, signo) == 0)
				sent++;
			pid = 0;
		}
	}
	return n < 0 ? -errno : sent;
}

int exec_cgroup_signal(const struct exec_cgroup *cg, int signo)
{
	int n, passes = 0;

	if (!cg->name[0])
		return 0;
	if (signo != SIGKILL)
		return signal_pass(cg, signo);
	n = kill_cgroup(cg);
	/* Kernels before 5.14 have no cgroup.kill: stop all first, so that no process can fork. */
	while (n == -ENOENT && passes++ < 64 && signal_pass(cg, SIGSTOP) > 0) {
		if (signal_pass(cg, SIGKILL) == 0)
			break;
		n = exec_cgroup_counter(cg, "cgroup.events", "populated") == 1 ? -ENOENT : 1;
	}
	return n;
}

void exec_cgroup_drop(struct exec_cgroup *cg)
{
	if (!cg->name[0])
		return;
	if (unlinkat(BOOT_FD_CGROUP, cg->name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
	    ndropped < DROPPED_MAX)
		dropped[ndropped++] = *cg;
	cg->name[0] = 0;
}

void exec_cgroup_drop_if_empty(struct exec_cgroup *cg)
{
	if (cg->name[0] && unlinkat(BOOT_FD_CGROUP, cg->name, AT_REMOVEDIR) == 0)
		cg->name[0] = 0;
}

void exec_cgroup_sweep(void)
{
	for (unsigned i = 0; i < ndropped;) {
		if (unlinkat(BOOT_FD_CGROUP, dropped[i].name, AT_REMOVEDIR) < 0 && errno == EBUSY)
			i++;
		else
			dropped[i] = dropped[--ndropped];
	}
}
