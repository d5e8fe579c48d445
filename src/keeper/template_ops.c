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
		keeper_reap();
		usleep(1000);
	}
	if (sandbox_table_is_alive(sb))
		return err_set(err, ERR_TIMEOUT, "sandbox %s did not end within %d ms", sb->id,
			       SEAL_WAIT_MS);
	hook_crash("seal:ended");
	if (storage_rename(&k->storage, storage_entry('s', sb->id).name,
			   storage_entry('t', name).name, err) < 0)
		return -1;
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
	if (strchr("kln", entry[0]) && entry[1] == '-' &&
	    strlen(entry) < KEEPER_ID_SIZE + strlen("l-") &&
	    storage_template(u->storage, entry, name) == 0 && strcmp(name, u->template) == 0)
		u->count++;
	return 0;
}

/* Considers the sandboxes of every keeper of this home. */
static int check_unused(struct keeper *k, const char *name, struct err *err)
{
	struct user_search u = { .template = name };
	struct layer_count layers = { .storage = &k->storage, .template = name };

	if (file_each_at(k->run, ".", search_state, &u) == 1)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by sandbox %s", name,
			       u.found);
	if (storage_each(&k->storage, "", count_layer, &layers, err) < 0)
		return -1;
	if (layers.count)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by %zu sealed layer%s",
			       name, layers.count, layers.count == 1 ? "" : "s");
	return 0;
}

/* Renames the files as those of a sandbox in the trash: the template is gone at once, and the next
 * keeper continues the removal after a crash. */
int template_ops_drop(struct keeper *k, const char *name, struct err *err)
{
	char id[KEEPER_ID_SIZE];
	auto_close int lock = template_ops_lock(k, LOCK_EX);
	uint64_t r = 0;

	if (lock < 0)
		return err_sys(err, -lock, "templates.lock");
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
