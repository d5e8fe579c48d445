/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/template_fill.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "sandbox/files_client.h"
#include "wire/agent_proto.h"

/* Limits while unpacking; sandboxes created from the template have their own. */
#define FILL_MEMORY (1ull << 30) /* xz -9 and zstd --long need a lot */
#define FILL_DISK (256ull << 30)
#define FILL_INODES (64ull << 20)

enum { PASSWD_MAX = 1 << 20 };

static void set_capacity(struct sandbox_spec *spec, uint64_t bytes)
{
	spec->store = KEEPER_STORE_DISK;
	spec->limits.memory_bytes = FILL_MEMORY;
	spec->limits.disk_bytes = spec->limits.file_bytes =
		bytes < LIMITS_DISK_MIN ? LIMITS_DISK_MIN : bytes;
	spec->limits.inodes = FILL_INODES;
}

struct sandbox_spec template_fill_spec(uint64_t bytes)
{
	struct sandbox_spec spec = sandbox_spec_default();

	spec.template = "empty";
	spec.class = KEEPER_CLASS_ROOT;
	spec.uid = spec.gid = 0;
	set_capacity(&spec, bytes ? bytes : FILL_DISK);
	return spec;
}

struct sandbox_spec template_fill_host_spec(uint64_t bytes)
{
	struct sandbox_spec spec = sandbox_spec_default();

	if (bytes)
		set_capacity(&spec, bytes);
	spec.limits.memory_bytes = FILL_MEMORY;
	return spec;
}

unsigned template_fill_flags(unsigned features)
{
	/* Without root only one id is mapped, so all files belong to it. */
	return AGENT_JOB_ROOTFS | (features & KEEPER_HAS_ROOT ? AGENT_JOB_OWNERS : 0);
}

int template_fill_sync(struct sandbox *sb, struct err *err)
{
	auto_close int fd = -1;

	if (files_open(sb, NULL, "/", AGENT_READ, 0, &fd, err) < 0)
		return -1;
	return syncfs(fd) < 0 ? err_sys(err, errno, "sync the template") : 0;
}

/* Whether its root directory has more than what the sandbox that was filled has anyway. */
static int has_files(struct sandbox *sb, bool *ret, struct err *err)
{
	static const char *const others[] = { ".", "..", "dev", "proc", "sys" };
	const struct dirent *e;
	DIR *dir;
	int fd;

	if (files_open(sb, NULL, "/", AGENT_READ, 0, &fd, err) < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return err_sys(err, errno, "read the root directory of the template");
	}
	*ret = false;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is of this thread */
	while (!*ret && (e = readdir(dir))) {
		*ret = true;
		for (size_t i = 0; i < ARRAY_LEN(others); i++)
			*ret = *ret && strcmp(e->d_name, others[i]) != 0;
	}
	closedir(dir);
	return 0;
}

static bool is_program(struct sandbox *sb, const char *path)
{
	struct files_stat st = { 0 };
	struct err ignored;
	bool found = files_stat(sb, NULL, path, true, &st, &ignored) == 0 && S_ISREG(st.st.mode) &&
		     (st.st.mode & 0111);

	free(st.target);
	return found;
}

int template_fill_check(struct sandbox *sb, bool is_image, struct err *err)
{
	bool found = false;

	if (is_program(sb, "/bin/sh") || is_program(sb, "/bin/bash"))
		return 0;
	if (has_files(sb, &found, err) < 0)
		return -1;
	if (!found)
		return err_set(err, ERR_INVALID,
			       "the %s has no files: a template needs a root file system",
			       is_image ? "image" : "archive or directory");
	return is_image
		       ? 0
		       : err_set(err, ERR_INVALID,
				 "no shell: neither /bin/sh nor /bin/bash is a program; the top of "
				 "the archive or directory must be the root of a file system");
}

/* "uid:gid" of a line "name:x:uid:gid:..." */
static bool find_user(char *passwd, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);
	char *save = NULL;

	for (char *line = strtok_r(passwd, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *uid = strncmp(line, name, n) == 0 && line[n] == ':'
				    ? strchr(line + n + 1, ':')
				    : NULL;
		size_t len = uid ? strspn(uid + 1, "0123456789:") : 0;

		while (len && uid[len] == ':')
			len--;
		if (len < 3 || len >= size)
			continue;
		snprintf(ret, size, "%.*s", (int)len, uid + 1);
		return true;
	}
	return false;
}

static int resolve_name(struct sandbox *sb, const char *name, uint32_t *uid, uint32_t *gid,
			struct err *err)
{
	auto_free void *passwd = NULL;
	char number[64];
	size_t len;

	if (files_read(sb, NULL, "/etc/passwd", PASSWD_MAX, &passwd, &len, err) < 0)
		return err_ctx(err, "user %.60s", name);
	if (!find_user(passwd, name, number, sizeof(number)))
		return err_set(err, ERR_NOT_FOUND,
			       "user %.60s: not found in /etc/passwd of the template", name);
	return template_parse_user(number, uid, gid, err) > 0
		       ? 0
		       : err_ctx(err, "user %.60s in /etc/passwd of the template", name);
}

int template_fill_user(struct sandbox *sb, struct template *t, struct err *err)
{
	char number[64];
	uint32_t uid, gid;
	int r = t->user ? template_parse_user(t->user, &uid, &gid, err) : 1;

	if (r != 0)
		return r < 0 ? err_ctx(err, "user %.60s", t->user) : 0;
	if (resolve_name(sb, t->user, &uid, &gid, err) < 0)
		return -1;
	if (!uid && t->class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID,
			       "user %.60s is root, which needs class \"root\" (--root)", t->user);
	/* Users of many images are in group 0, which only class "root" has. */
	if (!gid && t->class != KEEPER_CLASS_ROOT)
		gid = uid;
	snprintf(number, sizeof(number), "%u:%u", uid, gid);
	return template_set_string(&t->user, number, err);
}
