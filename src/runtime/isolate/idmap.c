/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"

/* Ranges are in the upper half of the positive 32-bit ids, above the subordinate ids of
 * distributions. */
#define FIRST_BASE 0x40000000u
#define RANGES 0x4000u

#define SECBIT_NO_SETUID_FIXUP_ (1 << 2)

enum { PROC_SHARED = 16 };

static int start_loopback(void)
{
	auto_close int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (s < 0)
		return -errno;
	return ioctl(s, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

static int make_network(int proc, uid_t base, bool rootless)
{
	int r;

	if (hook_weak("netns"))
		return 0;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = start_loopback();
	if (r < 0)
		return r;
	/* no process inside is privileged over this network: allow low ports to all users */
	r = file_printf_at(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0");
	if (r == 0 && !rootless)
		(void)file_printf_at(proc, "sys/net/ipv4/ping_group_range", "%u %u", base,
				     base + IDMAP_RANGE - 1);
	return r;
}

/* Forbids nested namespaces and limits inotify watches. Older kernels lack some of the files. */
static int set_user_limits(int proc)
{
	static const struct {
		const char *name;
		unsigned max;
	} bounds[] = {
		{ "max_user_namespaces", 0 },	  { "max_mnt_namespaces", 0 },
		{ "max_pid_namespaces", 0 },	  { "max_net_namespaces", 0 },
		{ "max_ipc_namespaces", 0 },	  { "max_uts_namespaces", 0 },
		{ "max_cgroup_namespaces", 0 },	  { "max_time_namespaces", 0 },
		{ "max_inotify_instances", 128 }, { "max_inotify_watches", 65536 },
		{ "max_fanotify_groups", 0 },	  { "max_fanotify_marks", 0 },
	};
	char path[96];

	if (hook_weak("usermax"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		int r;

		snprintf(path, sizeof(path), "sys/user/%s", bounds[i].name);
		r = file_printf_at(proc, path, "%u", bounds[i].max);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

static int change_user(uid_t id)
{
	/* Keep the capabilities across the change of user: some hosts allow only privileged
	 * processes to make a user namespace. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP_, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
		return -errno;
	return 0;
}

/* What the helper process of one namespace makes, and how its ids are mapped. */
struct plan {
	int proc;
	bool network, own_user; /* network: also bounds for the user */
	uid_t base; /* own_user: the uid to change to first */
	uid_t inside, outside, count; /* the map */
	gid_t gid_inside, gid_outside;
};

/* In the child: makes the namespaces, sends the result to the keeper and waits until the keeper has
 * opened them. */
static _Noreturn void helper_main(int sock, const struct plan *p)
{
	int r = p->network ? make_network(p->proc, p->base, !p->own_user) : 0;
	char end;

	if (r == 0 && p->own_user)
		r = change_user(p->base);
	if (r == 0 && unshare(CLONE_NEWUSER) < 0)
		r = -errno;
	if (r == 0 && p->network)
		r = set_user_limits(p->proc);
	if (write(sock, &r, sizeof(r)) == sizeof(r))
		(void)read(sock, &end, 1);
	_exit(0);
}

static int write_maps(pid_t pid, const struct plan *p)
{
	static const char *const files[] = { "uid_map", "gid_map" };
	char path[64];

	if (!p->own_user) {
		snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
		(void)file_printf_at(AT_FDCWD, path, "deny");
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		int r;

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		r = file_printf_at(AT_FDCWD, path, "%u %u %u", i ? p->gid_inside : p->inside,
				   i ? p->gid_outside : p->outside, p->count);
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_ns(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_namespaces(pid_t pid, int sock, const struct plan *p, int *userns, int *netns,
			   struct err *err)
{
	int r = -EIO;

	if (read(sock, &r, sizeof(r)) != sizeof(r))
		return err_sys(err, EIO, "namespace helper died");
	if (r < 0)
		return err_sys(err, -r, "make user and network namespace");
	r = write_maps(pid, p);
	if (r < 0)
		return err_sys(err, -r, "map ids");
	*userns = open_ns(pid, "user");
	if (*userns < 0)
		return err_sys(err, errno, "open namespace");
	if (p->network && !hook_weak("netns")) {
		*netns = open_ns(pid, "net");
		if (*netns < 0)
			return err_sys(err, errno, "open namespace");
	}
	return 0;
}

static int run_plan(const struct plan *p, int *userns, int *netns, struct err *err)
{
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		helper_main(pair[1], p);
	}
	close(pair[1]);
	r = pid < 0 ? err_sys(err, errno, "fork")
		    : open_namespaces(pid, pair[0], p, userns, netns, err);
	close(pair[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return r;
}

/* Each range is one byte of a file, locked through an open file description that every process of
 * the sandbox inherits. So a range becomes free exactly when the last process of its sandbox exits,
 * even after a crash of the keeper. */
static int take_range(struct idmap_host *h, struct idmap *idmap)
{
	auto_close int fd = openat(h->ids, "ids", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (!h->next)
		h->next = (uint32_t)getpid() * 37;
	for (uint32_t i = 0; i < RANGES; i++) {
		uint32_t slot = h->next++ % RANGES;
		struct flock lock = { .l_type = F_WRLCK, .l_start = slot, .l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			idmap->base = FIRST_BASE + slot * IDMAP_RANGE;
			idmap->lock = steal_fd(&fd);
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
	}
	return -EUSERS;
}

void idmap_close(struct idmap *idmap)
{
	close_fd(&idmap->userns);
	close_fd(&idmap->netns);
	close_fd(&idmap->lock);
}

/* The kernel caches every name below sys/ once per namespace, all of them in one hash chain of the
 * procfs: with thousands of sandboxes, a lookup walks the entries of all. So every few sandboxes
 * get a procfs of the keeper, whose cache goes away with it. If the keeper may not mount one, it
 * uses the host's. */
static int open_proc(struct idmap_host *h)
{
	if (!h->proc_left) {
		h->proc = mount_new("proc", NULL, 0,
				    SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);
		if (h->proc < 0)
			h->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (h->proc < 0)
			return -errno;
		h->proc_left = PROC_SHARED;
	}
	return h->proc;
}

static void release_proc(struct idmap_host *h)
{
	if (--h->proc_left == 0)
		close(h->proc);
}

int idmap_make(struct idmap_host *h, int one_id, struct idmap *ret, struct err *err)
{
	struct idmap idmap = { -1, -1, -1, 0 };
	struct plan p = { .network = true, .own_user = !h->rootless };
	int r = h->rootless ? 0 : take_range(h, &idmap);

	if (r < 0)
		return err_sys(err, -r, "id range");
	p.proc = open_proc(h);
	if (p.proc < 0) {
		idmap_close(&idmap);
		return err_sys(err, -p.proc, "procfs");
	}
	p.base = idmap.base;
	p.inside = h->rootless ? (uid_t)one_id : 0;
	p.outside = h->rootless ? 0 : idmap.base;
	p.count = h->rootless ? 1 : IDMAP_RANGE;
	p.gid_inside = p.inside;
	p.gid_outside = p.outside;
	r = run_plan(&p, &idmap.userns, &idmap.netns, err);
	release_proc(h);
	if (r < 0) {
		idmap_close(&idmap);
		return -1;
	}
	*ret = idmap;
	return 0;
}

int idmap_map_one(struct idmap_pair on_disk, struct idmap_pair seen_as, struct err *err)
{
	struct plan p = { .inside = on_disk.uid,
			  .outside = seen_as.uid,
			  .count = 1,
			  .gid_inside = on_disk.gid,
			  .gid_outside = seen_as.gid };
	int userns = -1, none = -1;

	return run_plan(&p, &userns, &none, err) < 0 ? -1 : userns;
}
