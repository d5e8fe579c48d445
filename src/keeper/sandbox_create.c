/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/test_hook.h"
#include "keeper/init_socket.h"
#include "keeper/layer_ops.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_pool.h"
#include "keeper/template_ops.h"
#include "wire/boot_fds.h"
#include "wire/enforcement.h"

enum { REMOVE_WAIT_MS = 1000 };

static int check_requirements(struct keeper *k, const struct keeper_create *c, struct err *err)
{
	struct enforcement f;

	/* holding a descriptor of a directory does not prove the right to read its contents */
	if (k->closed && c->nbinds)
		return err_set(err, ERR_DENIED,
			       "this keeper does not mount directories of the host (--closed)");
	if (!c->demand)
		return 0;
	if (c->store == KEEPER_STORE_DISK && storage_open(&k->storage, err) < 0)
		return -1;
	keeper_enforcement(k, &f);
	return enforcement_check(&f, c->store, c->demand, err);
}

/* On failure, sandbox_end.c undoes what was done, as the record says. */
static int make_kept(struct keeper *k, const char *id, const struct keeper_create *c, int userns,
		     int *ret, struct err *err)
{
	struct storage_entry e = storage_entry('k', id), layer = storage_entry('l', c->layers[0]);
	int upper = root_open_upper_layers(&k->roots, c, err);
	int r;

	if (upper < 0)
		return -1;
	if (upper == 0)
		return storage_make(&k->storage, e.name, c->template, &c->limits, userns, ret, err);
	r = c->take ? storage_move(&k->storage, layer.name, e.name, err)
		    : storage_snapshot(&k->storage, layer.name, e.name, err);
	if (r < 0)
		return -1;
	hook_crash("create:layer");
	return storage_reuse(&k->storage, e.name, userns, ret, err);
}

static int make_upper(struct keeper *k, const char *id, const struct keeper_create *c,
		      const struct idmap *idmap, int *ret, struct err *err)
{
	int userns = k->rootless ? -1 : idmap->userns;

	if (c->store == KEEPER_STORE_MEMORY)
		return storage_make_memory(&c->limits, userns, idmap->base, ret, err);
	if (c->keep && !slot_pool_is_slot(id))
		return make_kept(k, id, c, userns, ret, err);
	return storage_make(&k->storage, storage_entry('s', id).name, c->keep ? c->template : NULL,
			    &c->limits, userns, ret, err);
}

int sandbox_create_root(struct keeper *k, const char *id, const struct keeper_create *c,
			const int *dirs, const struct idmap *idmap, struct rootfs *ret,
			struct err *err)
{
	if (root_open_prepare(&k->roots, c, dirs, idmap, ret, err) < 0)
		return -1;
	return make_upper(k, id, c, idmap, &ret->upper, err);
}

static int start_cold(struct keeper *k, int dir, const struct keeper_create *c, const int *dirs,
		      struct sandbox_record *sb, struct err *err)
{
	auto_fini(slot_pool_close_parts) struct sandbox_parts parts = SANDBOX_PARTS_NONE;
	auto_fini(rootfs_close) struct rootfs root = ROOTFS_NONE;
	auto_close int listener = -1;
	struct sandbox_spawn_args args = { .host = &k->spawn,
					   .parts = &parts,
					   .root = &root,
					   .limits = &c->limits,
					   .root_class = c->class == KEEPER_CLASS_ROOT,
					   .inner_id = k->rootless ? c->uid : BOOT_INIT_ID };

	if (slot_pool_take_parts(k, c->uid, &c->limits, &parts, err) < 0)
		return -1;
	memcpy(sb->group, parts.group, sizeof(sb->group));
	sb->base = parts.idmap.base;
	hook_crash("create:parts");
	if (sandbox_create_root(k, sb->id, c, dirs, &parts.idmap, &root, err) < 0)
		return -1;
	hook_crash("create:store");
	listener = args.listener = init_socket_listen(dir);
	if (listener < 0)
		return err_sys(err, -listener, "listen");
	if (sandbox_spawn(&args, &sb->pid, err) < 0)
		return -1;
	hook_crash("create:spawned");
	sb->start = sandbox_table_start_time(sb->pid);
	return 0;
}

/* Gives a waiting lodge-init its root. */
static int set_slot_root(struct keeper *k, struct slot *s, const struct keeper_create *c,
			 const int *dirs, const struct sandbox_record *sb, struct err *err)
{
	auto_fini(rootfs_close) struct rootfs root = ROOTFS_NONE;

	if (s->rooted)
		return 0;
	if (sandbox_create_root(k, sb->id, c, dirs, &s->parts.idmap, &root, err) < 0)
		return -1;
	return sandbox_spawn_claim(s->pid, &root, err);
}

/* Renames the files of a slot durably to the name under which they are kept: the next keeper drops
 * files with the old name, and a later sync of their contents does not sync the name. */
static int claim_files(struct keeper *k, const struct slot *s, const char *id, struct err *err)
{
	struct storage_entry from = storage_entry('s', s->name);
	struct err ignored;

	if (s->store != KEEPER_STORE_DISK ||
	    storage_rename(&k->storage, from.name, storage_entry('k', id).name, err) == 0)
		return 0;
	(void)storage_drop(&k->storage, from.name, &ignored);
	return -1;
}

/* The slot's socket moves into the sandbox's directory. */
static int start_from_slot(struct keeper *k, struct slot *s, int dir, const struct keeper_create *c,
			   const int *dirs, struct sandbox_record *sb, struct err *err)
{
	char path[KEEPER_ID_SIZE + 16];

	snprintf(path, sizeof(path), "%s/init.sock", s->name);
	if (renameat(k->sandboxes, path, dir, "init.sock") < 0)
		return err_sys(err, errno, "claim %s", s->name);
	memcpy(sb->group, s->parts.group, sizeof(sb->group));
	sb->pid = s->pid;
	sb->start = s->start;
	sb->base = s->parts.idmap.base;
	hook_crash("claim:moved");
	if (claim_files(k, s, sb->id, err) < 0)
		return -1;
	hook_crash("claim:files");
	if (set_slot_root(k, s, c, dirs, sb, err) < 0)
		return -1;
	hook_crash("claim:rooted");
	return slot_pool_set_limits(k, sb->group, sb->pid, &c->limits, err);
}

/* The last step of a create: until here, a crash removes the files, and a layer that the create
 * took becomes a layer again. */
static int keep_files(int dir, struct sandbox_record *sb, struct err *err)
{
	struct sandbox_record kept = *sb;
	int r;

	kept.files = SANDBOX_FILES_STAY;
	r = sandbox_table_record_write(dir, &kept);
	if (r < 0)
		return err_sys(err, -r, "record");
	hook_crash("create:kept");
	*sb = kept;
	return 0;
}

static int finish_create(struct keeper *k, int dir, const struct keeper_create *c, bool bound,
			 struct sandbox_record *sb, int *ret_fd, struct err *err)
{
	auto_close int fd = -1;
	int r;

	r = sandbox_table_record_write(dir, sb);
	if (r < 0)
		return err_sys(err, -r, "record");
	hook_crash("create:recorded");
	hook_hold("create:recorded");
	if (init_socket_connect(k, sb->id, &fd, err) < 0 ||
	    (!bound && init_socket_bind(k, c, fd, err) < 0))
		return -1;
	hook_crash("create:bound");
	if (c->keep && keep_files(dir, sb, err) < 0)
		return -1;
	sb->made_ms = clock_mono_ms();
	if (!sandbox_table_add(&k->table, sb))
		return err_sys(err, ENOMEM, "sandbox %s", sb->id);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int start_sandbox(struct keeper *k, int dir, const struct keeper_create *c, const int *dirs,
			 struct sandbox_record *sb, struct keeper_reply *reply, int *ret_fd,
			 struct err *err)
{
	struct slot *s = slot_pool_take(k, c);
	bool bound = s && s->rooted;
	int r;

	reply->source = s ? KEEPER_SOURCE_POOL : KEEPER_SOURCE_COLD;
	if (s) {
		k->hits++;
		r = start_from_slot(k, s, dir, c, dirs, sb, err);
		slot_pool_free(k, s, !sb->pid); /* without a pid, the claim failed early */
	} else {
		k->misses += k->pool.max != 0 && !c->no_pool;
		r = start_cold(k, dir, c, dirs, sb, err);
	}
	if (r == 0 && c->keep && c->nlayers) /* see storage_reuse() */
		r = storage_limit(&k->storage, storage_entry('k', sb->id).name,
				  c->limits.disk_bytes, err);
	return r < 0 ? -1 : finish_create(k, dir, c, bound, sb, ret_fd, err);
}

/* After a recent destroy of the same id, the kernel needs some time to end its processes. */
static int wait_removed(struct keeper *k, const char *id)
{
	for (int i = 0; i < REMOVE_WAIT_MS; i++) {
		if (faccessat(k->trash, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		if (i > 0)
			usleep(1000);
		(void)sandbox_end_empty_trash(k);
	}
	return -1;
}

/* Records what to do with the files after a crash, before any are made. */
static int plan_files(int dir, const struct keeper_create *c, struct sandbox_record *sb,
		      struct err *err)
{
	int r;

	if (!c->keep)
		return 0;
	sb->files = c->take ? SANDBOX_FILES_BACK : SANDBOX_FILES_DROP;
	if (c->take)
		memcpy(sb->layer, c->layers[0], sizeof(sb->layer));
	r = sandbox_table_record_write(dir, sb);
	hook_crash("create:planned");
	if (r < 0)
		return err_sys(err, -r, "record");
	return c->take ? layer_ops_release(sb->layer, err) : 0;
}

static int check_id(struct keeper *k, const char *id, const struct keeper_create *c,
		    struct err *err)
{
	if (id[1] == '.' && strchr("gpt", id[0]))
		return err_set(err, ERR_INVALID,
			       "sandbox ids must not begin with g., p. or t. (reserved)");
	if (c->keep && k->oneshot)
		return err_set(err, ERR_INVALID, "a one-shot keeper does not keep files");
	if (wait_removed(k, id) < 0) {
		err_set(err, ERR_UNAVAILABLE, "sandbox %s is still being removed, try again", id);
		err->sys = EBUSY;
		return -1;
	}
	if (!k->oneshot && storage_has(&k->storage, storage_entry('k', id).name))
		return err_set(err, ERR_CONFLICT, "sandbox %s already has files", id);
	return 0;
}

static void undo_create(struct keeper *k, struct sandbox_record *sb, const struct keeper_create *c)
{
	if (c->keep)
		sb->files = c->take ? SANDBOX_FILES_BACK : SANDBOX_FILES_DROP;
	sandbox_end_discard(k, sb);
	if (c->take) /* if possible, the layer exists again before the reply is sent */
		(void)wait_removed(k, sb->id);
}

int sandbox_create(struct keeper *k, const char *id, const struct keeper_create *c, const int *dirs,
		   struct keeper_reply *reply, int *ret_fd, struct err *err)
{
	struct sandbox_record sb = { .store = c->store, .class = c->class };
	auto_close int dir = -1, lock = -1;

	if (check_requirements(k, c, err) < 0)
		return -1;
	memcpy(sb.id, id, sizeof(sb.id));
	memcpy(sb.group, id, sizeof(sb.group)); /* until it has a cgroup */
	memcpy(sb.template, c->template, sizeof(sb.template));
	lock = template_ops_lock(k, LOCK_SH); /* until the record names the template */
	if (lock < 0)
		return err_sys(err, -lock, "templates.lock");
	if (check_id(k, id, c, err) < 0)
		return -1;
	if (mkdirat(k->sandboxes, id, 0700) < 0)
		return err_sys(err, errno, "sandbox %s", id);
	hook_crash("create:dir");
	dir = openat(k->sandboxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return err_sys(err, errno, "sandbox %s", id);
	if (plan_files(dir, c, &sb, err) < 0 ||
	    start_sandbox(k, dir, c, dirs, &sb, reply, ret_fd, err) < 0) {
		undo_create(k, &sb, c);
		return -1;
	}
	reply->pid = sb.pid;
	return 0;
}
