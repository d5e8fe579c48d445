/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/slot_parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/auto.h"
#include "wire/boot_fds.h"

enum { TTY_GID = 5 };

unsigned long long slot_parts_serial(struct keeper *k)
{
	if (!k->serial)
		(void)getrandom(&k->serial, sizeof(k->serial), 0);
	return k->serial++;
}

void slot_parts_close(struct sandbox_parts *p)
{
	idmap_close(&p->idmap);
	devfs_close(&p->dev);
	cgroup_fds_close(&p->cgroup);
}

void slot_parts_trim(struct sandbox_parts *p)
{
	devfs_close(&p->dev);
	cgroup_fds_close(&p->cgroup);
	close_fd(&p->idmap.netns);
	close_fd(&p->idmap.lock);
}

void slot_parts_drop(struct keeper *k, struct sandbox_parts *p)
{
	slot_parts_close(p);
	if (p->group[0])
		(void)cgroup_remove(&k->cgroups, p->group);
}

static int make_parts(struct keeper *k, uid_t inner, const struct limits *limits,
		      struct sandbox_parts *ret, struct err *err)
{
	struct sandbox_parts p = SANDBOX_PARTS_NONE;
	int r = idmap_make(&k->idmap_host, (int)inner, &p.idmap, err);

	if (r == 0) {
		r = devfs_make(k->rootless, k->rootless ? 0 : p.idmap.base + TTY_GID, &p.dev);
		r = r < 0 ? err_sys(err, -r, "/dev") : 0;
	}
	if (r == 0) {
		snprintf(p.group, sizeof(p.group), "g.%llx", slot_parts_serial(k));
		r = cgroup_make(&k->cgroups, p.group, limits,
				k->rootless ? 0 : p.idmap.base + BOOT_INIT_ID, &p.cgroup, err);
	}
	if (r < 0) {
		slot_parts_drop(k, &p);
		return -1;
	}
	*ret = p;
	return 0;
}

int slot_parts_set_limits(struct keeper *k, const char *group, const struct limits *limits,
			  bool entered, struct err *err)
{
	const struct limits defaults = limits_default();

	if (memcmp(limits, &defaults, sizeof(defaults)) == 0)
		return 0;
	return cgroup_set_limits(&k->cgroups, group, limits, entered, err);
}

int slot_parts_take(struct keeper *k, uid_t inner, const struct limits *limits,
		    struct sandbox_parts *ret, struct err *err)
{
	struct sandbox_parts *p;

	/* a rootless namespace maps one id, which only the request gives */
	if (k->rootless || k->nparts == 0)
		return make_parts(k, inner, limits, ret, err);
	p = &k->parts[--k->nparts];
	if (slot_parts_set_limits(k, p->group, limits, false, err) < 0) {
		slot_parts_drop(k, p);
		return -1;
	}
	*ret = *p;
	return 0;
}

bool slot_parts_make_ahead(struct keeper *k)
{
	const struct limits defaults = limits_default();
	struct err err;

	if (k->nparts >= k->parts_target ||
	    make_parts(k, 0, &defaults, &k->parts[k->nparts], &err) < 0)
		return false;
	k->nparts++;
	return true;
}
