/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "base/units.h"
#include "runtime/linux_calls.h"

enum {
	CPU_PERIOD_US = 100000,
	FREEZE_WAIT_MS = 2000,
	INIT_ALLOWANCE = 64 << 20,
};

static int open_dir(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* `optional`: missing in some kernel configurations. */
static int set_number(int dir, const char *file, bool optional, uint64_t value, struct err *err)
{
	int r = file_printf_at(dir, file, "%" PRIu64, value);

	return r < 0 && !(optional && r == -ENOENT) ? err_sys(err, -r, "%s", file) : 0;
}

static int64_t cpu_quota(const struct limits *l)
{
	return (int64_t)l->cpu_milli * CPU_PERIOD_US / 1000;
}

static int set_v2(int dir, const struct limits *l, struct err *err)
{
	int r;

	if (set_number(dir, "cpu.weight", false, l->cpu_weight, err) < 0)
		return -1;
	r = l->cpu_milli
		    ? file_printf_at(dir, "cpu.max", "%" PRId64 " %d", cpu_quota(l), CPU_PERIOD_US)
		    : file_printf_at(dir, "cpu.max", "max %d", CPU_PERIOD_US);
	if (r < 0)
		return err_sys(err, -r, "cpu.max");
	return set_number(dir, "pids.max", false, l->pids + LIMITS_OWN_PIDS, err);
}

/* lodge-init writes the output of commands: rings of running ones and logs of ended ones, each up
 * to their share. Beside them it has tables of a fixed size, and input that commands have not read
 * yet: AGENT_EXECS_MAX times AGENT_DATA_MAX. */
static uint64_t init_memory(const struct limits *l)
{
	return 2 * limits_output_share(l->memory_bytes) + INIT_ALLOWANCE;
}

/* `in_use`: only raises it. The rings that exist may still fill, and below what they take the
 * kernel would kill lodge-init. */
static int set_init_memory(int dir, const struct limits *l, bool in_use, struct err *err)
{
	auto_close int init = open_dir(dir, "init");
	uint64_t now;

	if (init < 0)
		return err_sys(err, errno, "init");
	/* of an older version: "max" */
	if (in_use && (file_number_at(init, "memory.max", "", &now) < 0 || now >= init_memory(l)))
		return 0;
	if (set_number(init, "memory.max", false, init_memory(l), err) < 0)
		return -1;
	return set_number(init, "memory.swap.max", true, 0, err);
}

static int set_v2_memory(int dir, const struct limits *l, bool in_use, struct err *err)
{
	auto_close int cmd = open_dir(dir, "cmd");

	if (cmd < 0)
		return err_sys(err, errno, "cmd");
	if (set_init_memory(dir, l, in_use, err) < 0)
		return -1;
	if (set_number(cmd, "memory.max", false, l->memory_bytes, err) < 0)
		return -1;
	return set_number(cmd, "memory.swap.max", true, 0, err);
}

static int set_v1_memory(int dir, const struct limits *l, struct err *err)
{
	char size[SIZE_TEXT];

	/* The kernel keeps memsw >= limit: a lower limit is written first, a higher one last. */
	if (file_printf_at(dir, "memory.limit_in_bytes", "%" PRIu64, l->memory_bytes) == -EBUSY)
		return err_set(
			err, ERR_CONFLICT,
			"limits.memory_bytes: the sandbox uses more than %s; free memory first",
			units_format(l->memory_bytes, size));
	if (set_number(dir, "memory.memsw.limit_in_bytes", true, l->memory_bytes, err) < 0 ||
	    set_number(dir, "memory.limit_in_bytes", false, l->memory_bytes, err) < 0)
		return -1;
	return set_number(dir, "memory.kmem.tcp.limit_in_bytes", true, l->memory_bytes / 4, err);
}

static int set_v1_cpu(int dir, const struct limits *l, bool fresh, struct err *err)
{
	uint32_t shares = l->cpu_weight * 1024 / 100;
	int r = 0;

	if ((!fresh || l->cpu_weight != 100) &&
	    set_number(dir, "cpu.shares", true, shares < 2 ? 2 : shares, err) < 0)
		return -1;
	/* writing a quota walks every cgroup, so a new one stays at its default */
	if (!fresh || l->cpu_milli)
		r = file_printf_at(dir, "cpu.cfs_quota_us", "%" PRId64,
				   l->cpu_milli ? cpu_quota(l) : -1);
	return r < 0 ? err_sys(err, -r, "cpu.cfs_quota_us") : 0;
}

static int set_v1(int which, int dir, const struct limits *l, bool fresh, struct err *err)
{
	if (which == CGROUP_MEMORY)
		return set_v1_memory(dir, l, err);
	return which == CGROUP_CPU
		       ? set_v1_cpu(dir, l, fresh, err)
		       : set_number(dir, "pids.max", false, l->pids + LIMITS_OWN_PIDS, err);
}

void cgroup_fds_close(struct cgroup_fds *f)
{
	int *all[] = { &f->dir, &f->commands, &f->init, &f->memory_out, &f->oom, &f->pids_events };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		close_fd(all[i]);
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		close_fd(&f->tasks[i]);
}

/* Lets lodge-init make cgroups below `dir` and move its children into them. */
static void give_to_init(int dir, uid_t owner)
{
	(void)fchown(dir, owner, owner);
	(void)fchownat(dir, "cgroup.procs", owner, owner, 0);
}

static int make_v2(struct cgroup_host *h, const char *id, const struct limits *l, uid_t owner,
		   struct cgroup_fds *f, struct err *err)
{
	auto_close int cmd = -1;

	if (mkdirat(h->v2, id, 0755) < 0)
		return err_sys(err, errno, "cgroup2 mkdir");
	f->dir = open_dir(h->v2, id);
	if (f->dir < 0)
		return err_sys(err, errno, "cgroup2 open");
	give_to_init(f->dir, owner);
	if (!h->v2_limits) {
		f->commands = sys_open_tree(f->dir, "", SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH);
		return f->commands < 0 ? err_sys(err, errno, "cgroup2 open_tree") : 0;
	}
	if (mkdirat(f->dir, "init", 0755) < 0 || mkdirat(f->dir, "cmd", 0755) < 0)
		return err_sys(err, errno, "cgroup2 mkdir");
	cmd = open_dir(f->dir, "cmd");
	if (cmd < 0)
		return err_sys(err, errno, "cgroup2 cmd");
	give_to_init(cmd, owner);
	f->commands = sys_open_tree(cmd, "", SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH);
	f->init = openat(f->dir, "init/cgroup.procs", O_WRONLY | O_CLOEXEC);
	f->pids_events = openat(f->dir, "pids.events", O_RDONLY | O_CLOEXEC);
	if (f->commands < 0 || f->init < 0 || f->pids_events < 0)
		return err_sys(err, errno, "cgroup2 files");
	return set_v2(f->dir, l, err);
}

int cgroup_enter(struct cgroup_fds *f, const struct limits *l, struct err *err)
{
	static const char *const steps[] = { "cgroup.subtree_control",
					     "cmd/cgroup.subtree_control" };

	if (f->init < 0)
		return 0;
	if (write(f->init, "0", 1) < 0)
		return err_sys(err, errno, "cgroup init");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int r = file_printf_at(f->dir, steps[i], "+memory");

		if (r < 0)
			return err_sys(err, -r, "%s", steps[i]);
	}
	f->oom = openat(f->dir, "cmd/memory.events", O_RDONLY | O_CLOEXEC);
	if (f->oom < 0)
		return err_sys(err, errno, "memory.events");
	return set_v2_memory(f->dir, l, false, err);
}

static int make_v1(struct cgroup_host *h, int which, const char *id, const struct limits *l,
		   struct cgroup_fds *f, struct err *err)
{
	auto_close int dir = -1;

	if (mkdirat(h->v1[which], id, 0755) < 0)
		return err_sys(err, errno, "cgroup mkdir");
	dir = open_dir(h->v1[which], id);
	if (dir < 0)
		return err_sys(err, errno, "cgroup open");
	f->tasks[which] = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
	if (f->tasks[which] < 0)
		return err_sys(err, errno, "tasks");
	if (which == CGROUP_MEMORY) {
		f->oom = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
		f->memory_out = openat(h->v1[which], "tasks", O_WRONLY | O_CLOEXEC);
		if (f->oom < 0 || f->memory_out < 0)
			return err_sys(err, errno, "memory.oom_control");
	} else if (which == CGROUP_PIDS) {
		f->pids_events = openat(dir, "pids.events", O_RDONLY | O_CLOEXEC);
	}
	return set_v1(which, dir, l, true, err);
}

int cgroup_make(struct cgroup_host *h, const char *id, const struct limits *l, uid_t owner,
		struct cgroup_fds *ret, struct err *err)
{
	struct cgroup_fds f = { -1, -1, -1, { -1, -1, -1 }, -1, -1, -1 };
	int r = 0;

	if (hook_weak("cgroup")) {
		*ret = f;
		return 0;
	}
	if (h->v2 >= 0)
		r = make_v2(h, id, l, owner, &f, err);
	for (int i = 0; r == 0 && i < CGROUP_V1_COUNT; i++)
		if (h->v1[i] >= 0)
			r = make_v1(h, i, id, l, &f, err);
	if (r < 0) {
		cgroup_fds_close(&f);
		(void)cgroup_remove(h, id);
		return -1;
	}
	*ret = f;
	return 0;
}

int cgroup_set_limits(struct cgroup_host *h, const char *id, const struct limits *l,
		      enum cgroup_use use, struct err *err)
{
	if (h->v2_limits) {
		auto_close int dir = open_dir(h->v2, id);

		if (dir < 0)
			return err_sys(err, errno, "cgroup");
		if (set_v2(dir, l, err) < 0)
			return -1;
		return use == CGROUP_EMPTY ? 0 : set_v2_memory(dir, l, use == CGROUP_IN_USE, err);
	}
	for (int i = 0; i < CGROUP_V1_COUNT; i++) {
		auto_close int dir = h->v1[i] < 0 ? -1 : open_dir(h->v1[i], id);

		if (dir >= 0 && set_v1(i, dir, l, false, err) < 0)
			return -1;
	}
	return 0;
}

int cgroup_freeze(struct cgroup_host *h, const char *id, bool frozen, struct err *err)
{
	auto_close int dir = h->v2 < 0 ? -1 : open_dir(h->v2, id);
	auto_close int events = dir < 0 ? -1 : openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	int r;

	if (events < 0 && !frozen && (h->v2 < 0 || errno == ENOENT))
		return 0; /* without a group it never froze */
	if (events < 0)
		return err_set(
			err, ERR_CONFLICT,
			"cannot pause: lodge may not use cgroup v2 here; run `lodge doctor`");
	r = file_printf_at(dir, "cgroup.freeze", "%d", frozen);
	if (r < 0)
		return err_sys(err, -r, "cgroup.freeze");
	for (int left = FREEZE_WAIT_MS; left > 0; left -= 50) {
		struct pollfd p = { .fd = events, .events = POLLPRI };
		uint64_t now = 0;
		char text[256];

		if (file_read_fd(events, text, sizeof(text)) > 0 &&
		    file_number_in(text, "frozen", &now) == 0 && now == (uint64_t)frozen)
			return 0;
		(void)poll(&p, 1, 50);
	}
	(void)file_printf_at(dir, "cgroup.freeze", "0");
	return err_set(err, ERR_TIMEOUT, "cgroup.freeze: no effect within %d ms", FREEZE_WAIT_MS);
}

static void read_number(int dir, const char *file, const char *key, uint64_t *ret)
{
	if (dir < 0 || file_number_at(dir, file, key, ret) < 0)
		*ret = 0;
}

/* Adds up a field of all devices: "8:0 rbytes=1 wbytes=2 rios=3 ..." */
static uint64_t sum_field(const char *text, const char *key)
{
	uint64_t sum = 0;

	while ((text = strstr(text, key)))
		sum += strtoull(text += strlen(key), NULL, 10);
	return sum;
}

/* The room for a spare shell is lodge's also when a command has taken it: beside lodge-init, no
 * more processes are counted than the guest may have. */
static void read_pids(int dir, struct keeper_stats *ret)
{
	uint64_t max;

	read_number(dir, "pids.current", "", &ret->pids);
	read_number(dir, "pids.events", "max", &ret->pids_denied);
	if (dir < 0 || file_number_at(dir, "pids.peak", "", &ret->pids_peak) < 0)
		ret->pids_peak = UINT64_MAX;
	if (dir < 0 || file_number_at(dir, "pids.max", "", &max) < 0 || max < LIMITS_OWN_PIDS)
		return;
	if (ret->pids == max)
		ret->pids--;
	if (ret->pids_peak == max)
		ret->pids_peak--;
}

static void read_optional(int dir, int pids, struct keeper_stats *ret)
{
	char text[4096];

	ret->io_read_bytes = ret->io_write_bytes = UINT64_MAX;
	read_pids(pids, ret);
	if (file_read_at(dir, "io.stat", text, sizeof(text)) < 0)
		return;
	ret->io_read_bytes = sum_field(text, " rbytes=");
	ret->io_write_bytes = sum_field(text, " wbytes=");
}

int cgroup_stats(struct cgroup_host *h, const char *id, struct keeper_stats *ret, struct err *err)
{
	auto_close int dir = h->v2 < 0 ? -1 : open_dir(h->v2, id);
	auto_close int memory = h->v1[CGROUP_MEMORY] < 0 ? -1 : open_dir(h->v1[CGROUP_MEMORY], id);
	auto_close int pids = h->v1[CGROUP_PIDS] < 0 ? -1 : open_dir(h->v1[CGROUP_PIDS], id);

	if (dir < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "cannot read statistics: the sandbox has no cgroup");
	read_number(dir, "cpu.stat", "usage_usec", &ret->cpu_us);
	read_optional(dir, h->v2_limits ? dir : pids, ret);
	if (h->v2_limits) {
		read_number(dir, "cmd/memory.current", "", &ret->memory_bytes);
		read_number(dir, "cmd/memory.peak", "", &ret->memory_peak_bytes);
		read_number(dir, "cmd/memory.events", "oom_kill", &ret->oom_kills);
		return 0;
	}
	read_number(memory, "memory.usage_in_bytes", "", &ret->memory_bytes);
	read_number(memory, "memory.max_usage_in_bytes", "", &ret->memory_peak_bytes);
	read_number(memory, "memory.oom_control", "oom_kill", &ret->oom_kills);
	return 0;
}

uint64_t cgroup_init_oom_kills(struct cgroup_host *h, const char *id)
{
	auto_close int dir = h->v2 < 0 || !h->v2_limits ? -1 : open_dir(h->v2, id);
	uint64_t kills;

	read_number(dir, "init/memory.events", "oom_kill", &kills);
	return kills;
}

int cgroup_kill(struct cgroup_host *h, const char *id)
{
	char path[KEEPER_ID_SIZE + 16];
	int r;

	if (h->v2 < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.kill", id);
	r = file_printf_at(h->v2, path, "1");
	if (r == 0) {
		/* before Linux 5.16, processes of a frozen cgroup die only when it is thawed */
		snprintf(path, sizeof(path), "%s/cgroup.freeze", id);
		(void)file_printf_at(h->v2, path, "0");
	}
	return r == -ENOENT ? 0 : r;
}

bool cgroup_is_populated(struct cgroup_host *h, const char *id)
{
	char path[KEEPER_ID_SIZE + 16];
	uint64_t populated = 0;

	if (h->v2 < 0)
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.events", id);
	return file_number_at(h->v2, path, "populated", &populated) == 0 && populated;
}

static int remove_child(int dir, const char *name, void *arg)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	(void)file_each_at(dir, name, remove_child, arg);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
	return 0;
}

/* `commands`: lodge-init may have left cgroups of commands below. */
static int remove_group(int parent, const char *id, bool commands)
{
	if (parent < 0)
		return 0;
	if (commands && unlinkat(parent, id, AT_REMOVEDIR) == 0)
		return 0;
	if (commands)
		(void)file_each_at(parent, id, remove_child, NULL);
	if (unlinkat(parent, id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

int cgroup_remove(struct cgroup_host *h, const char *id)
{
	int worst = remove_group(h->v2, id, true);

	for (int i = 0; i < CGROUP_V1_COUNT; i++) {
		int r = remove_group(h->v1[i], id, false);

		worst = r < 0 ? r : worst;
	}
	return worst;
}

struct each {
	cgroup_each_fn *fn;
	void *arg;
};

static int each_entry(int dir, const char *name, void *arg)
{
	struct each *e = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		e->fn(name, e->arg);
	return 0;
}

void cgroup_each(struct cgroup_host *h, cgroup_each_fn *fn, void *arg)
{
	struct each e = { fn, arg };

	if (h->v2 >= 0)
		(void)file_each_at(h->v2, ".", each_entry, &e);
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		if (h->v1[i] >= 0)
			(void)file_each_at(h->v1[i], ".", each_entry, &e);
}
