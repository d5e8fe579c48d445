/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/template_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "keeper/sandbox_end.h"

enum { SEAL_WAIT_MS = 1000 };

int template_ops_lock(struct keeper *k, int how)
{
	auto_close int fd =
		openat(k->run, "templates.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, how) < 0)
		return -errno;
	return steal_fd(&fd);
}

static bool is_builtin(const char *name)
{
	return strcmp(name, "host") == 0 || strcmp(name, "empty") == 0;
}

/* How many templates it stands on, itself included. */
static int count_depth(const struct storage *s, const char *name)
{
	char at[KEEPER_ID_SIZE];
	int n = 1;

	snprintf(at, sizeof(at), "%s", name);
	while (n <= KEEPER_TEMPLATE_DEPTH &&
	       storage_template(s, storage_entry('t', at).name, at) == 0)
		n++;
	return n;
}

/* Before the rename: a template never lacks the one that it stands on. */
static int put_on_template(struct keeper *k, const struct sandbox_record *sb, struct err *err)
{
	if (is_builtin(sb->template))
		return 0;
	if (count_depth(&k->storage, sb->template) >= KEEPER_TEMPLATE_DEPTH)
		return err_set(err, ERR_LIMIT, "template '%s' stands on %d others, the maximum",
			       sb->template, KEEPER_TEMPLATE_DEPTH - 1);
	return storage_set_template(&k->storage, storage_entry('s', sb->id).name, sb->template,
				    err);
}

/* Ends the sandbox first, so that its files cannot change. */
int template_ops_seal(struct keeper *k, struct sandbox_record *sb, const char *name,
		      struct err *err)
{
	if (sb->store != KEEPER_STORE_DISK)
		return err_set(err, ERR_INVALID,
			       "only a sandbox with the disk store can become a template");
	if (sb->files != SANDBOX_FILES_GO)
		return err_set(err, ERR_INVALID,
			       "a sandbox created with keep cannot become a template");
	(void)cgroup_kill(&k->cgroups, sb->group);
	sandbox_end_kill_init(sb);
	for (int i = 0; i < SEAL_WAIT_MS && sandbox_table_is_alive(sb); i++) {
		keeper_reap(k);
		usleep(1000);
	}
	if (sandbox_table_is_alive(sb))
		return err_set(err, ERR_TIMEOUT, "sandbox %s did not end within %d ms", sb->id,
			       SEAL_WAIT_MS);
	hook_crash("seal:ended");
	if (put_on_template(k, sb, err) < 0)
		return -1;
	if (storage_rename(&k->storage, storage_entry('s', sb->id).name,
			   storage_entry('t', name).name, err) < 0)
		return -1;
	k->sealed_template = true;
	hook_crash("seal:renamed");
	return sandbox_end_destroy(k, sb, err);
}

struct user_search {
	const char *template;
	char found[KEEPER_ID_SIZE];
};

static int match_sandbox(int sandboxes, const char *id, void *arg)
{
	struct user_search *u = arg;
	struct sandbox_record sb;
	auto_close int dir = openat(sandboxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (dir < 0 || sandbox_table_record_read(dir, &sb) < 0 ||
	    strcmp(sb.template, u->template) != 0 || !sandbox_table_is_alive(&sb))
		return 0;
	snprintf(u->found, sizeof(u->found), "%s", id);
	return 1;
}

static int search_state(int run, const char *name, void *arg)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/sandboxes", name);
	return file_each_at(run, path, match_sandbox, arg) == 1;
}

struct layer_count {
	const struct storage *storage;
	const char *template;
	size_t count;
};

static int count_layer(int dir, const char *entry, void *arg)
{
	struct layer_count *u = arg;
	char name[KEEPER_ID_SIZE];

	(void)dir;
	if (strchr("klnt", entry[0]) && entry[1] == '-' &&
	    strlen(entry) < KEEPER_ID_SIZE + strlen("l-") &&
	    storage_template(u->storage, entry, name) == 0 && strcmp(name, u->template) == 0)
		u->count++;
	return 0;
}

static int count_template(int dir, const char *name, void *arg)
{
	return strlen(name) < KEEPER_ID_SIZE ? count_layer(dir, storage_entry('t', name).name, arg)
					     : 0;
}

/* Considers the sandboxes of every keeper of this home. */
static int check_unused(struct keeper *k, const char *name, struct err *err)
{
	struct user_search u = { .template = name };
	struct layer_count layers = { .storage = &k->storage, .template = name };

	if (file_each_at(k->run, ".", search_state, &u) == 1)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by sandbox %s", name,
			       u.found);
	/* only templates stand on a layer of an image, and they are few */
	if (storage_each(&k->storage, keeper_is_image_layer(name) ? "t-" : "",
			 keeper_is_image_layer(name) ? count_template : count_layer, &layers,
			 err) < 0)
		return -1;
	if (layers.count)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by %zu sealed layer%s",
			       name, layers.count, layers.count == 1 ? "" : "s");
	return 0;
}

/* Renames the files as those of a sandbox in the trash: the template is gone at once, and the next
 * keeper continues the removal after a crash. */
static int drop_one(struct keeper *k, const char *name, struct err *err)
{
	char id[KEEPER_ID_SIZE];
	uint64_t r = 0;

	if (check_unused(k, name, err) < 0)
		return -1;
	(void)getrandom(&r, sizeof(r), 0);
	snprintf(id, sizeof(id), "t.%016llx", (unsigned long long)r);
	if (mkdirat(k->trash, id, 0700) < 0)
		return err_sys(err, errno, "trash");
	k->trash_count++;
	hook_crash("drop:noted");
	if (storage_rename(&k->storage, storage_entry('t', name).name, storage_entry('s', id).name,
			   err) < 0)
		return err->sys == ENOENT
			       ? err_set(err, ERR_NOT_FOUND, "unknown template '%s'", name)
			       : -1;
	hook_crash("drop:renamed");
	return 0;
}

/* Drops it and the layers of images below it, down to the first that something else uses. */
static int drop_chain(struct keeper *k, const char *name, struct err *err)
{
	char at[KEEPER_ID_SIZE], below[KEEPER_ID_SIZE];
	struct err in_use;
	int more;

	snprintf(at, sizeof(at), "%s", name);
	more = storage_open(&k->storage, err) == 0 &&
	       storage_template(&k->storage, storage_entry('t', at).name, below) == 0;
	if (drop_one(k, name, err) < 0)
		return -1;
	while (more && keeper_is_image_layer(below)) {
		memcpy(at, below, sizeof(at));
		more = storage_template(&k->storage, storage_entry('t', at).name, below) == 0;
		if (drop_one(k, at, &in_use) < 0)
			break;
	}
	return 0;
}

static int sweep_layer(int dir, const char *name, void *arg)
{
	struct err in_use;

	(void)dir;
	if (keeper_is_image_layer(name) && strlen(name) < KEEPER_ID_SIZE)
		(void)drop_chain(arg, name, &in_use);
	return 0;
}

static void sweep_layers(struct keeper *k)
{
	struct err ignored; /* the next sweep finds them again */

	(void)storage_each(&k->storage, "t-", sweep_layer, k, &ignored);
}

/* A home without a service has no other moment to sweep. */
int template_ops_drop(struct keeper *k, const char *name, struct err *err)
{
	auto_close int lock = template_ops_lock(k, LOCK_EX);

	if (lock < 0)
		return err_sys(err, -lock, "templates.lock");
	if (drop_chain(k, name, err) < 0)
		return -1;
	if (k->oneshot)
		sweep_layers(k);
	return 0;
}

void template_ops_release(struct keeper *k, const char *name)
{
	auto_close int lock = -1;
	struct err in_use;

	if (!keeper_is_image_layer(name))
		return;
	lock = template_ops_lock(k, LOCK_EX);
	if (lock >= 0)
		(void)drop_chain(k, name, &in_use);
}

void template_ops_sweep(struct keeper *k)
{
	auto_close int lock = template_ops_lock(k, LOCK_EX);

	if (lock >= 0)
		sweep_layers(k);
}
