/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sandboxes that wait: half of them for any root, half with the usual one in place. A slot is
 * given to one guest and never again to another. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/test_hook.h"
#include "base/fd_message.h"
#include "wire/agent_proto.h"
#include "wire/boot_fds.h"

/* What most ask for: such a slot waits with its root in place and a shell started. */
static struct keeper_create usual(const struct keeper *k)
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

/* Whether a slot made for the usual request will do. What control groups limit can still change. */
static bool is_usual(const struct keeper *k, const struct keeper_create *c)
{
	const struct keeper_create u = usual(k);
	struct limits l = c->limits;

	l.memory_bytes = u.limits.memory_bytes;
	l.cpu_milli = u.limits.cpu_milli;
	l.cpu_weight = u.limits.cpu_weight;
	l.pids = u.limits.pids;
	return strcmp(c->template, u.template) == 0 && strcmp(c->hostname, u.hostname) == 0 &&
	       memcmp(&l, &u.limits, sizeof(l)) == 0 && c->store == u.store && c->keep == u.keep &&
	       c->nlayers == 0 && c->nbinds == 0 && !*c->workdir && c->uid == u.uid &&
	       c->gid == u.gid;
}

bool keeper_is_slot(const char *id)
{
	return strncmp(id, KEEPER_SLOT_PREFIX, strlen(KEEPER_SLOT_PREFIX)) == 0;
}

/* Until this one is too old. */
static int64_t left_ms(const struct keeper *k, const struct slot *s)
{
	return k->pool.age_ms ? s->made_ms + k->pool.age_ms - clock_mono_ms() : INT32_MAX;
}

static size_t count(const struct keeper *k, bool rooted)
{
	size_t n = 0;

	for (size_t i = 0; i < k->nslots; i++)
		n += k->slots[i]->rooted == rooted;
	return n;
}

static struct slot *pull(struct keeper *k, size_t i)
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
		pull(k, i);
		if (s->start && sandbox_table_start_time(s->pid) == s->start && left_ms(k, s) > 0)
			return s;
		keeper_slot_free(k, s, true);
	}
	return NULL;
}

struct slot *keeper_take_slot(struct keeper *k, const struct keeper_create *c)
{
	struct slot *s = NULL;

	if (c->no_pool || c->class != KEEPER_CLASS_USER)
		return NULL;
	if (is_usual(k, c))
		s = take_kind(k, true);
	return s ? s : take_kind(k, false);
}

/* `discard`: the slot was never claimed, so that its process and groups are still its own. */
void keeper_slot_free(struct keeper *k, struct slot *s, bool discard)
{
	struct sandbox_record b = { .pid = s->pid, .start = s->start, .store = s->store };

	memcpy(b.id, s->name, sizeof(b.id));
	memcpy(b.group, s->parts.group, sizeof(b.group));
	if (discard)
		keeper_discard(k, &b);
	else
		(void)unlinkat(k->boxes, s->name, AT_REMOVEDIR);
	keeper_parts_close(&s->parts);
	free(s);
}

/* Told at once whose it is, and to keep a shell ready: the engine's default environment is empty.
 */
static int arm_slot(struct keeper *k, const struct slot *s, struct err *err)
{
	const struct keeper_create u = usual(k);
	struct {
		struct agent_hdr hdr;
		struct agent_exec exec;
		char cwd[1], user[1];
	} __attribute__((packed)) msg = {
		.hdr = { .type = AGENT_SPARE_SHELL,
			 .req = 1,
			 .len = sizeof(msg) - sizeof(msg.hdr) },
		.exec = { .exec = 1, .log_bytes = u.limits.output_bytes },
	};
	auto_close int fd = -1;
	int r;

	if (keeper_connect(k, s->name, &fd, err) < 0 || keeper_bind(k, &u, fd, err) < 0)
		return -1;
	r = fd_message_send(fd, &msg, sizeof(msg), NULL, 0);
	return r < 0 ? err_sys(err, -r, "spare shell") : 0;
}

static int spawn_slot(struct keeper *k, struct slot *s, int dir, struct err *err)
{
	const struct keeper_create u = usual(k);
	struct rootfs root;
	struct spawn_args args = { .host = &k->spawn,
				   .parts = &s->parts,
				   .limits = &u.limits,
				   .inner_id = BOOT_INIT_ID,
				   .listener = keeper_listen(dir) };
	int r = args.listener < 0 ? err_sys(err, -args.listener, "slot") : 0;

	rootfs_init(&root);
	args.root = s->rooted ? &root : NULL;
	if (r == 0)
		r = keeper_take_parts(k, 0, &u.limits, &s->parts, err);
	hook_crash("pool:parts");
	if (s->rooted)
		s->store = u.store;
	if (r == 0 && s->rooted)
		r = keeper_prepare_root(k, s->name, &u, NULL, &s->parts.kit, &root, err);
	if (r == 0)
		r = spawn(&args, &s->pid, err);
	s->start = s->pid > 0 ? sandbox_table_start_time(s->pid) : 0;
	if (r == 0)
		keeper_parts_trim(&s->parts);
	hook_crash("pool:spawned");
	rootfs_close(&root);
	if (args.listener >= 0)
		close(args.listener);
	return r;
}

static int fill_slot(struct keeper *k, struct slot *s, struct err *err)
{
	auto_close int dir = -1;

	if (mkdirat(k->boxes, s->name, 0700) < 0)
		return err_sys(err, errno, "slot");
	hook_crash("pool:dir");
	dir = openat(k->boxes, s->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
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
	*s = (struct slot){ .parts = PARTS_NONE,
			    .store = KEEPER_STORE_MEMORY,
			    .made_ms = clock_mono_ms(),
			    .rooted = count(k, true) <= count(k, false) };
	snprintf(s->name, sizeof(s->name), KEEPER_SLOT_PREFIX "%llx", keeper_serial(k));
	if (fill_slot(k, s, &err) < 0) {
		keeper_slot_free(k, s, true);
		return false;
	}
	k->slots[k->nslots++] = s;
	return true;
}

int keeper_set_pool(struct keeper *k, const struct keeper_pool *pool, struct err *err)
{
	if (k->rootless && pool->max)
		return err_set(err, ERR_UNAVAILABLE,
			       "no pool without root: its namespaces are made to order");
	if (pool->max > KEEPER_SLOTS_MAX)
		return err_set(err, ERR_INVALID, "pool max is %u at most", KEEPER_SLOTS_MAX);
	/* those that have a root have one of the other kind */
	while (k->nslots > (pool->kept == k->pool.kept ? pool->max : 0))
		keeper_slot_free(k, k->slots[--k->nslots], true);
	k->pool = *pool;
	while (k->nslots < pool->min)
		if (!make_slot(k))
			return err_set(err, ERR_UNAVAILABLE, "pool: %zu of %u slots made",
				       k->nslots, pool->min);
	return 0;
}

bool keeper_is_short(const struct keeper *k)
{
	return k->nslots < k->pool.min || k->nparts == 0;
}

/* The first is the oldest. */
static void drop_old(struct keeper *k)
{
	if (k->nslots && left_ms(k, k->slots[0]) <= 0)
		keeper_slot_free(k, pull(k, 0), true);
}

bool keeper_drop_dead(struct keeper *k)
{
	size_t before = k->nslots;

	for (size_t i = k->nslots; i-- > 0;)
		if (kill(k->slots[i]->pid, 0) < 0)
			keeper_slot_free(k, pull(k, i), true);
	return k->nslots < before;
}

int keeper_rest_ms(const struct keeper *k)
{
	int64_t left;

	if (!k->nslots || !k->pool.age_ms)
		return -1;
	left = left_ms(k, k->slots[0]);
	return left > 0 ? (int)left : 0;
}

bool keeper_prepare_one(struct keeper *k)
{
	if (k->draining || k->rootless)
		return false;
	drop_old(k);
	return k->nslots < k->pool.target ? make_slot(k) : keeper_make_parts_ahead(k);
}
