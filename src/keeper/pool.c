/* SPDX-License-Identifier: Apache-2.0 */
/* What is made before anyone asks: namespaces (kits), and whole sandboxes that wait for a root
 * (slots). A slot is given to one guest and never again to another. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/hook.h"
#include "wire/boot.h"

int keeper_take_kit(struct keeper *k, uid_t inner, struct kit *ret, struct err *err)
{
	/* rootless kits map one given id and are made to order */
	if (k->rootless || k->nkits == 0)
		return kit_make(&k->kit_host, (int)inner, ret, err);
	*ret = k->kits[--k->nkits];
	return 0;
}

struct slot *keeper_take_slot(struct keeper *k)
{
	while (k->nslots > 0) {
		struct slot *s = k->slots[--k->nslots];

		if (box_start_time(s->pid))
			return s;
		keeper_slot_free(k, s, true);
	}
	return NULL;
}

/* `discard`: the slot was never claimed, so that its process and groups are still its own. */
void keeper_slot_free(struct keeper *k, struct slot *s, bool discard)
{
	struct box b = { .pid = s->pid, .store = KEEPER_STORE_MEMORY };

	memcpy(b.id, s->name, sizeof(b.id));
	memcpy(b.group, s->name, sizeof(b.group));
	if (discard)
		keeper_discard(k, &b);
	else
		(void)unlinkat(k->boxes, s->name, AT_REMOVEDIR);
	kit_close(&s->kit);
	free(s);
}

static int fill_slot(struct keeper *k, struct slot *s, struct err *err)
{
	struct cgroup_fds cg = { -1, -1, -1, { -1, -1, -1 }, -1, -1, -1 };
	struct limits limits = limits_default();
	struct spawn_args args = { .host = &k->spawn, .kit = &s->kit, .cgroup = &cg, .listener = -1,
				   .limits = &limits, .inner_id = BOOT_INIT_ID };
	auto_close int dir = -1;
	int r = mkdirat(k->boxes, s->name, 0700) < 0 ? err_sys(err, errno, "slot") : 0;

	hook_crash("pool:dir");
	if (r == 0) {
		dir = openat(k->boxes, s->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		args.listener = dir < 0 ? -errno : keeper_listen(dir);
		r = args.listener < 0 ? err_sys(err, -args.listener, "slot") : 0;
	}
	if (r == 0)
		r = keeper_take_kit(k, 0, &s->kit, err);
	if (r == 0)
		r = cgroup_make(&k->cgroups, s->name, &limits, s->kit.base + BOOT_INIT_ID, &cg, err);
	hook_crash("pool:cgroup");
	if (r == 0)
		r = spawn(&args, &s->pid, err);
	hook_crash("pool:spawned");
	if (args.listener >= 0)
		close(args.listener);
	cgroup_fds_close(&cg);
	return r;
}

static bool make_slot(struct keeper *k)
{
	struct slot *s = malloc(sizeof(*s));
	struct err err;

	if (!s)
		return false;
	*s = (struct slot){ .kit = { -1, -1, -1, 0 } };
	if (!k->serial) /* not the pid: an earlier keeper may have had the same, and its slots live on */
		(void)getrandom(&k->serial, sizeof(k->serial), 0);
	snprintf(s->name, sizeof(s->name), KEEPER_SLOT_PREFIX "%llx", (unsigned long long)k->serial++);
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
		return err_set(err, ERR_UNAVAILABLE, "no pool without root: its namespaces are made to order");
	if (pool->max > KEEPER_SLOTS_MAX)
		return err_set(err, ERR_INVALID, "pool max is %u at most", KEEPER_SLOTS_MAX);
	k->pool = *pool;
	while (k->nslots > pool->max)
		keeper_slot_free(k, k->slots[--k->nslots], true);
	while (k->nslots < pool->min)
		if (!make_slot(k))
			return err_set(err, ERR_UNAVAILABLE, "pool: %zu of %u slots made", k->nslots,
				       pool->min);
	return 0;
}

bool keeper_prepare_one(struct keeper *k)
{
	struct err err;

	if (k->draining || k->rootless)
		return false;
	if (k->nslots < k->pool.target)
		return make_slot(k);
	if (k->nkits >= k->kits_wanted)
		return false;
	if (kit_make(&k->kit_host, 0, &k->kits[k->nkits], &err) < 0)
		return false;
	k->nkits++;
	return true;
}
