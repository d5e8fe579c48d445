/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/slot_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/test_hook.h"
#include "base/fd_message.h"
#include "keeper/init_socket.h"
#include "keeper/sandbox_create.h"
#include "keeper/sandbox_end.h"
#include "wire/agent_proto.h"
#include "wire/boot_fds.h"

/* ---- parts ----------------------------------------------------------------------------------- */

enum { TTY_GID = 5 };

/* Unique among all keepers, because slots and cgroups of an earlier one may still exist. */
static unsigned long long next_serial(struct keeper *k)
{
	if (!k->serial)
		(void)getrandom(&k->serial, sizeof(k->serial), 0);
	return k->serial++;
}

void slot_pool_close_parts(struct sandbox_parts *p)
{
	idmap_close(&p->idmap);
	devfs_close(&p->dev);
	cgroup_fds_close(&p->cgroup);
}

/* Of a running slot: closes what its claim does not need. Every descriptor that the keeper holds is
 * copied by the next clone. */
static void trim_parts(struct sandbox_parts *p)
{
	devfs_close(&p->dev);
	cgroup_fds_close(&p->cgroup);
	close_fd(&p->idmap.netns);
	close_fd(&p->idmap.lock);
}

void slot_pool_drop_parts(struct keeper *k, struct sandbox_parts *p)
{
	slot_pool_close_parts(p);
	if (p->group[0])
		(void)cgroup_remove(&k->cgroups, p->group);
}

static int make_parts(struct keeper *k, uid_t inner, const struct limits *limits,
		      struct sandbox_parts *ret, struct err *err)
{
	struct sandbox_parts p = SANDBOX_PARTS_NONE;
	int r = idmap_make(&k->idmap_host, (int)inner, &p.idmap, err);

	if (r == 0) {
		r = devfs_make(k->rootless, k->rootless ? 0 : p.idmap.base + TTY_GID,
			       limits->memory_bytes, &p.dev);
		r = r < 0 ? err_sys(err, -r, "/dev") : 0;
	}
	if (r == 0) {
		snprintf(p.group, sizeof(p.group), "g.%llx", next_serial(k));
		r = cgroup_make(&k->cgroups, p.group, limits,
				k->rootless ? 0 : p.idmap.base + BOOT_INIT_ID, &p.cgroup, err);
	}
	if (r < 0) {
		slot_pool_drop_parts(k, &p);
		return -1;
	}
	*ret = p;
	return 0;
}

static bool is_default(const struct limits *limits)
{
	const struct limits defaults = limits_default();

	return memcmp(limits, &defaults, sizeof(defaults)) == 0;
}

int slot_pool_set_limits(struct keeper *k, const char *group, pid_t init,
			 const struct limits *limits, struct err *err)
{
	int r;

	if (is_default(limits))
		return 0;
	if (cgroup_set_limits(&k->cgroups, group, limits, CGROUP_WAITING, err) < 0)
		return -1;
	r = devfs_resize_of(init, limits->memory_bytes);
	return r < 0 ? err_sys(err, -r, "resize /dev/shm") : 0;
}

/* Parts made in advance have the default limits. */
static int limit_parts(struct keeper *k, const struct sandbox_parts *p, const struct limits *limits,
		       struct err *err)
{
	int r;

	if (is_default(limits))
		return 0;
	if (cgroup_set_limits(&k->cgroups, p->group, limits, CGROUP_EMPTY, err) < 0)
		return -1;
	r = devfs_resize(&p->dev, limits->memory_bytes);
	return r < 0 ? err_sys(err, -r, "resize /dev/shm") : 0;
}

int slot_pool_take_parts(struct keeper *k, uid_t inner, const struct limits *limits,
			 struct sandbox_parts *ret, struct err *err)
{
	struct sandbox_parts *p;

	/* a rootless namespace maps one id, which only the request gives */
	if (k->rootless || k->nparts == 0)
		return make_parts(k, inner, limits, ret, err);
	p = &k->parts[--k->nparts];
	if (limit_parts(k, p, limits, err) < 0) {
		slot_pool_drop_parts(k, p);
		return -1;
	}
	*ret = *p;
	return 0;
}

/* Makes one set in advance; false when there are enough. */
static bool make_parts_ahead(struct keeper *k)
{
	const struct limits defaults = limits_default();
	struct err err;

	if (k->nparts >= k->parts_target ||
	    make_parts(k, 0, &defaults, &k->parts[k->nparts], &err) < 0)
		return false;
	k->nparts++;
	return true;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The most common request: a rooted slot is made for it, with its root in place and a shell
 * started. */
static struct keeper_create default_request(const struct keeper *k)
{
	return (struct keeper_create){ .template = "host",
				       .hostname = "lodge",
				       .limits = limits_default(),
				       .store = k->pool.kept ? KEEPER_STORE_DISK
							     : KEEPER_STORE_MEMORY,
				       .keep = k->pool.kept,
				       .class = KEEPER_CLASS_USER,
				       .uid = 1000,
				       .gid = 1000 };
}

/* True if a rooted slot fits. Limits that cgroups enforce can still change. */
static bool fits_rooted_slot(const struct keeper *k, const struct keeper_create *c)
{
	const struct keeper_create u = default_request(k);
	struct limits l = c->limits;

	l.memory_bytes = u.limits.memory_bytes;
	l.cpu_milli = u.limits.cpu_milli;
	l.cpu_weight = u.limits.cpu_weight;
	l.pids = u.limits.pids;
	l.output_bytes = u.limits.output_bytes; /* the engine enforces it */
	return strcmp(c->template, u.template) == 0 && strcmp(c->hostname, u.hostname) == 0 &&
	       memcmp(&l, &u.limits, sizeof(l)) == 0 && c->store == u.store && c->keep == u.keep &&
	       c->nlayers == 0 && c->nbinds == 0 && !*c->workdir && c->uid == u.uid &&
	       c->gid == u.gid;
}

bool slot_pool_is_slot(const char *id)
{
	return strncmp(id, SLOT_POOL_PREFIX, strlen(SLOT_POOL_PREFIX)) == 0;
}

/* Time until the slot expires. */
static int64_t left_ms(const struct keeper *k, const struct slot *s)
{
	return k->pool.age_ms ? s->made_ms + k->pool.age_ms - clock_mono_ms() : INT32_MAX;
}

static size_t count_slots(const struct keeper *k, bool rooted)
{
	size_t n = 0;

	for (size_t i = 0; i < k->nslots; i++)
		n += k->slots[i]->rooted == rooted;
	return n;
}

static struct slot *remove_slot(struct keeper *k, size_t i)
{
	struct slot *s = k->slots[i];

	k->nslots--;
	memmove(k->slots + i, k->slots + i + 1, (k->nslots - i) * sizeof(struct slot *));
	return s;
}

static struct slot *take_kind(struct keeper *k, bool rooted)
{
	for (size_t i = k->nslots; i-- > 0;) {
		struct slot *s = k->slots[i];

		if (s->rooted != rooted)
			continue;
		remove_slot(k, i);
		if (s->start && sandbox_table_start_time(s->pid) == s->start && left_ms(k, s) > 0)
			return s;
		slot_pool_free(k, s, true);
	}
	return NULL;
}

struct slot *slot_pool_take(struct keeper *k, const struct keeper_create *c)
{
	struct slot *s = NULL;

	if (c->no_pool || c->class != KEEPER_CLASS_USER)
		return NULL;
	if (fits_rooted_slot(k, c))
		s = take_kind(k, true);
	return s ? s : take_kind(k, false);
}

void slot_pool_free(struct keeper *k, struct slot *s, bool discard)
{
	struct sandbox_record sb = { .pid = s->pid, .start = s->start, .store = s->store };

	memcpy(sb.id, s->name, sizeof(sb.id));
	memcpy(sb.group, s->parts.group, sizeof(sb.group));
	if (discard)
		sandbox_end_discard(k, &sb);
	else
		(void)unlinkat(k->sandboxes, s->name, AT_REMOVEDIR);
	slot_pool_close_parts(&s->parts);
	free(s);
}

/* Binds the slot to the default user and makes it start a shell in advance. The shell has the
 * environment of a session with the default limits and nothing else. */
static int arm_slot(struct keeper *k, const struct slot *s, struct err *err)
{
	const struct keeper_create u = default_request(k);
	struct {
		struct agent_hdr hdr;
		struct agent_exec exec;
		char strings[LIMITS_VARIABLE + 2]; /* variable, directory, user */
	} __attribute__((packed)) msg = {
		.hdr = { .type = AGENT_SPARE_SHELL, .req = 1 },
		.exec = { .exec = 1, .log_bytes = u.limits.output_bytes },
	};
	bool limited = storage_has_limit(&k->storage);
	size_t len = sizeof(msg) - sizeof(msg.strings) + 2;
	auto_close int fd = -1;
	int r;

	if (limited) {
		limits_disk_variable(u.limits.disk_bytes, msg.strings);
		len += strlen(msg.strings) + 1;
		msg.exec.envc = 1;
	}
	msg.hdr.len = (uint32_t)(len - sizeof(msg.hdr));
	if (init_socket_connect(k, s->name, &fd, err) < 0 || init_socket_bind(k, &u, fd, err) < 0)
		return -1;
	r = fd_message_send(fd, &msg, len, NULL, 0);
	return r < 0 ? err_sys(err, -r, "spare shell") : 0;
}

static int spawn_slot(struct keeper *k, struct slot *s, int dir, struct err *err)
{
	const struct keeper_create u = default_request(k);
	auto_fini(rootfs_close) struct rootfs root = ROOTFS_NONE;
	auto_close int listener = init_socket_listen(dir);
	struct sandbox_spawn_args args = { .host = &k->spawn,
					   .parts = &s->parts,
					   .limits = &u.limits,
					   .root = s->rooted ? &root : NULL,
					   .inner_id = BOOT_INIT_ID,
					   .listener = listener };

	if (s->rooted)
		s->store = u.store;
	if (listener < 0)
		return err_sys(err, -listener, "slot");
	if (slot_pool_take_parts(k, 0, &u.limits, &s->parts, err) < 0)
		return -1;
	hook_crash("pool:parts");
	if (s->rooted && sandbox_create_root(k, s->name, &u, NULL, &s->parts.idmap, &root, err) < 0)
		return -1;
	if (sandbox_spawn(&args, &s->pid, err) < 0)
		return -1;
	s->start = sandbox_table_start_time(s->pid);
	trim_parts(&s->parts);
	hook_crash("pool:spawned");
	return 0;
}

static int fill_slot(struct keeper *k, struct slot *s, struct err *err)
{
	auto_close int dir = -1;

	if (mkdirat(k->sandboxes, s->name, 0700) < 0)
		return err_sys(err, errno, "slot");
	hook_crash("pool:dir");
	dir = openat(k->sandboxes, s->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return err_sys(err, errno, "slot");
	if (spawn_slot(k, s, dir, err) < 0)
		return -1;
	return s->rooted ? arm_slot(k, s, err) : 0;
}

static bool make_slot(struct keeper *k)
{
	struct slot *s = malloc(sizeof(*s));
	struct err err;

	if (!s)
		return false;
	*s = (struct slot){ .parts = SANDBOX_PARTS_NONE,
			    .store = KEEPER_STORE_MEMORY,
			    .made_ms = clock_mono_ms(),
			    .rooted = count_slots(k, true) <= count_slots(k, false) };
	snprintf(s->name, sizeof(s->name), SLOT_POOL_PREFIX "%llx", next_serial(k));
	if (fill_slot(k, s, &err) < 0) {
		slot_pool_free(k, s, true);
		return false;
	}
	k->slots[k->nslots++] = s;
	return true;
}

int slot_pool_resize(struct keeper *k, const struct keeper_pool *pool, struct err *err)
{
	if (k->rootless && pool->max)
		return err_set(err, ERR_UNAVAILABLE,
			       "a rootless keeper has no pool: set pool sizes to 0");
	/* a change of `kept` changes the kind of root: drop all slots */
	while (k->nslots > (pool->kept == k->pool.kept ? pool->max : 0))
		slot_pool_free(k, k->slots[--k->nslots], true);
	k->pool = *pool;
	while (k->nslots < pool->min)
		if (!make_slot(k))
			return err_set(err, ERR_UNAVAILABLE, "pool: made only %zu of %u slots",
				       k->nslots, pool->min);
	return 0;
}

bool slot_pool_is_short(const struct keeper *k)
{
	return k->nslots < k->pool.min || k->nparts == 0;
}

/* The first slot is the oldest. */
static void drop_expired(struct keeper *k)
{
	if (k->nslots && left_ms(k, k->slots[0]) <= 0)
		slot_pool_free(k, remove_slot(k, 0), true);
}

bool slot_pool_drop_dead(struct keeper *k)
{
	size_t before = k->nslots;

	for (size_t i = k->nslots; i-- > 0;)
		if (kill(k->slots[i]->pid, 0) < 0)
			slot_pool_free(k, remove_slot(k, i), true);
	return k->nslots < before;
}

int slot_pool_next_expiry_ms(const struct keeper *k)
{
	int64_t left;

	if (!k->nslots || !k->pool.age_ms)
		return -1;
	left = left_ms(k, k->slots[0]);
	return left > 0 ? (int)left : 0;
}

bool slot_pool_fill_one(struct keeper *k)
{
	if (k->draining || k->rootless)
		return false;
	drop_expired(k);
	return k->nslots < k->pool.target ? make_slot(k) : make_parts_ahead(k);
}
