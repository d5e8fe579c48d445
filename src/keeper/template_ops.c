/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: the files of a sandbox that ended, kept below those of others. */
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

/* The sandbox ends first: its files must not change any more. */
int template_ops_seal(struct keeper *k, struct sandbox_record *sb, const char *name,
		      struct err *err)
{
	char from[KEEPER_ID_SIZE + 4], to[KEEPER_ID_SIZE + 4];

	if (sb->store != KEEPER_STORE_DISK)
		return err_set(err, ERR_INVALID, "only a sandbox on disk can become a template");
	if (sb->files != SANDBOX_FILES_GO)
		return err_set(err, ERR_INVALID, "files that are kept cannot become a template");
	snprintf(from, sizeof(from), "s-%s", sb->id);
	snprintf(to, sizeof(to), "t-%s", name);
	(void)cgroup_kill(&k->cgroups, sb->group);
	sandbox_end_kill_init(sb);
	for (int i = 0; i < SEAL_WAIT_MS && sandbox_table_is_alive(sb); i++) {
		keeper_reap();
		usleep(1000);
	}
	if (sandbox_table_is_alive(sb))
		return err_set(err, ERR_TIMEOUT, "sandbox %s does not end", sb->id);
	hook_crash("seal:ended");
	if (storage_rename(&k->storage, from, to, err) < 0)
		return -1;
	hook_crash("seal:renamed");
	return sandbox_end_destroy(k, sb, err);
}

struct users {
	const char *template;
	char found[KEEPER_ID_SIZE];
};

static int find_user_sandbox(int sandboxes, const char *id, void *arg)
{
	struct users *u = arg;
	struct sandbox_record sb;
	auto_close int dir = openat(sandboxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (dir < 0 || sandbox_table_record_read(dir, &sb) < 0 ||
	    strcmp(sb.template, u->template) != 0 || !sandbox_table_is_alive(&sb))
		return 0;
	snprintf(u->found, sizeof(u->found), "%s", id);
	return 1;
}

static int find_user_state(int run, const char *name, void *arg)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/sandboxes", name);
	return file_each_at(run, path, find_user_sandbox, arg) == 1;
}

struct uses {
	const struct storage *storage;
	const char *template;
	size_t count;
};

static int count_layer(int dir, const char *entry, void *arg)
{
	struct uses *u = arg;
	char name[KEEPER_ID_SIZE];

	(void)dir;
	if (strchr("kln", entry[0]) && entry[1] == '-' &&
	    strlen(entry) < KEEPER_ID_SIZE + strlen("l-") &&
	    storage_template(u->storage, entry, name) == 0 && strcmp(name, u->template) == 0)
		u->count++;
	return 0;
}

/* By whichever keeper of this home they were made. */
static int refuse_if_used(struct keeper *k, const char *name, struct err *err)
{
	struct users u = { .template = name };
	struct uses layers = { .storage = &k->storage, .template = name };

	if (file_each_at(k->run, ".", find_user_state, &u) == 1)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by sandbox %s", name,
			       u.found);
	if (storage_each(&k->storage, "", count_layer, &layers, err) < 0)
		return -1;
	if (layers.count)
		return err_set(err, ERR_CONFLICT, "template '%s' is in use by %zu sealed layer%s",
			       name, layers.count, layers.count == 1 ? "" : "s");
	return 0;
}

/* Its files go the way of a sandbox's: out of sight at once, known to the next start if we die. */
int template_ops_drop(struct keeper *k, const char *name, struct err *err)
{
	char from[KEEPER_ID_SIZE + 4], to[KEEPER_ID_SIZE], *id = to + strlen("s-");
	auto_close int lock = template_ops_lock(k, LOCK_EX);
	uint64_t r = 0;

	if (lock < 0)
		return err_sys(err, -lock, "templates.lock");
	if (refuse_if_used(k, name, err) < 0)
		return -1;
	(void)getrandom(&r, sizeof(r), 0);
	snprintf(from, sizeof(from), "t-%s", name);
	snprintf(to, sizeof(to), "s-t.%016llx", (unsigned long long)r);
	if (mkdirat(k->trash, id, 0700) < 0)
		return err_sys(err, errno, "trash");
	k->trash_count++;
	hook_crash("drop:noted");
	if (storage_rename(&k->storage, from, to, err) < 0)
		return err->sys == ENOENT
			       ? err_set(err, ERR_NOT_FOUND, "unknown template '%s'", name)
			       : -1;
	hook_crash("drop:renamed");
	return 0;
}
