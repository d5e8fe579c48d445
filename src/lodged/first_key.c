/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/first_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/core/auth.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "service/service_admin.h"
#include "admit/api_key.h"

static const char given_id[] = "key_given", actor[] = "lodged";

static int add_key(struct engine *e, const char *id, const char *name, const char *text,
		   struct err *err)
{
	struct store_key k = { .tenant = "default", .scopes = "admin" };

	snprintf(k.id, sizeof(k.id), "%s", id);
	snprintf(k.name, sizeof(k.name), "%s", name);
	return auth_hash_key(text, k.hash, err) < 0 ? -1 : api_key_add(e, actor, &k, err);
}

/* If the configured key changed or was removed, the previous one is revoked. */
static int set_given_key(struct engine *e, const char *given, struct err *err)
{
	uint8_t hash[STORE_HASH];
	struct store_key was, same;
	bool had = api_key_get(e, given_id, &was, err) == 0;

	if (!had && err->code != ERR_NOT_FOUND)
		return -1;
	if (!given)
		return had ? api_key_remove(e, actor, &was, err) : 0;
	if (auth_hash_key(given, hash, err) < 0)
		return -1;
	if (had && memcmp(hash, was.hash, sizeof(hash)) == 0)
		return 0;
	if (had && api_key_remove(e, actor, &was, err) < 0)
		return -1;
	if (api_key_find(e, hash, &same, err) == 0) /* the configured key is an existing one */
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	return add_key(e, given_id, "given", given, err);
}

static int write_key(const char *home, const char *text, struct err *err)
{
	char path[4200], temp[4208];
	auto_close int fd = -1;
	int r;

	snprintf(path, sizeof(path), "%s/admin.key", home);
	snprintf(temp, sizeof(temp), "%s.new", path);
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0 || rename(temp, path) < 0)
		return err_sys(err, errno, "%s", path);
	r = file_sync_dir(home);
	return r < 0 ? err_sys(err, -r, "%s", home) : 0;
}

/* Write the file first: a stored key without a file would prevent the creation of another. */
static int create_key(struct engine *e, struct err *err)
{
	char text[KEY_TEXT];
	int r;

	if (auth_generate_key(text, err) < 0 || write_key(engine_home(e), text, err) < 0)
		return -1;
	hook_crash("key:written");
	r = add_key(e, "", "admin", text, err);
	explicit_bzero(text, sizeof(text));
	return r;
}

int first_key(struct engine *e, const char *given, bool *ret_made, struct err *err)
{
	bool has;

	if (set_given_key(e, given, err) < 0 || api_key_has_admin(e, NULL, &has, err) < 0)
		return -1;
	if (!has && create_key(e, err) < 0)
		return -1;
	*ret_made = !has;
	return 0;
}
