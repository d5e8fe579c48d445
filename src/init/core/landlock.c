/* SPDX-License-Identifier: Apache-2.0 */
/* The rules refer to the files that exist when the command starts: a file that replaces one of them
 * later is not allowed. A dynamic program needs its loader, so the loader is a rule too. The loader
 * can run any program it can read; Landlock cannot prevent that. */
#include "init/core/landlock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "init/core/guest_path.h"

enum {
	PATH_SIZE = AGENT_PATH_MAX + 256,
	LOADER_SIZE = 256,
	LOADERS_MAX = 8, /* each is added once */
	HEADERS_MAX = 64, /* program headers searched for the loader */
	MEMFD_NOEXEC = 8, /* MFD_NOEXEC_SEAL */
};

struct ruleset {
	int rules;
	const struct cred *cred;
	int dirs[AGENT_LANDLOCK_DIRS]; /* opened */
	size_t ndirs;
	char loaders[LOADERS_MAX][LOADER_SIZE];
	size_t nloaders;
};

static char path[PATH_SIZE];

static int add_rule(struct ruleset *o, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr a = { .allowed_access = access, .parent_fd = fd };

	return syscall(SYS_landlock_add_rule, o->rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0) < 0
		       ? -errno
		       : 0;
}

/* A user who can write to a program, or to the directory it is found in, could put any program
 * there. Not checked for a user who owns everything. */
static bool is_user_writable(const struct ruleset *o, const struct stat *st)
{
	const struct cred *c = o->cred;

	if (c->uid == 0 || init_binding.one_id)
		return false;
	if (st->st_uid == c->uid || (st->st_mode & S_IWOTH))
		return true;
	if (!(st->st_mode & S_IWGRP))
		return false;
	for (uint32_t i = 0; i < c->ngroups; i++)
		if (st->st_gid == c->groups[i])
			return true;
	return st->st_gid == c->gid;
}

/* ---- loaders --------------------------------------------------------------------------------- */

/* The file is untrusted: its offsets are used only for pread(). */
static bool read_loader(int dir, const char *program, char ret[LOADER_SIZE])
{
	auto_close int fd = guest_path_openat(dir, program, O_RDONLY | O_CLOEXEC, 0);
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (fd < 0 || pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(part) || head.e_phoff > INT64_MAX / 2)
		return false;
	for (unsigned i = 0; i < head.e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)head.e_phoff + (off_t)(i * sizeof(part));

		if (pread(fd, &part, sizeof(part), at) != sizeof(part))
			return false;
		if (part.p_type != PT_INTERP)
			continue;
		if (part.p_filesz < 2 || part.p_filesz > LOADER_SIZE ||
		    part.p_offset > INT64_MAX / 2 ||
		    pread(fd, ret, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
			return false;
		return ret[part.p_filesz - 1] == '\0' && ret[0] == '/';
	}
	return false;
}

/* Regular files only: the program names its loader, and a directory would allow everything in it.
 */
static int add_loader(struct ruleset *o, int dir, const char *program)
{
	char loader[LOADER_SIZE];
	auto_close int fd = -1;
	struct stat st;

	if (!read_loader(dir, program, loader))
		return 0;
	for (size_t i = 0; i < o->nloaders; i++)
		if (!strcmp(o->loaders[i], loader))
			return 0;
	if (o->nloaders < LOADERS_MAX)
		memcpy(o->loaders[o->nloaders++], loader, strlen(loader) + 1);
	fd = guest_path_openat(AT_FDCWD, loader, O_PATH | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || is_user_writable(o, &st))
		return 0;
	return add_rule(o, fd, LANDLOCK_ACCESS_FS_EXECUTE);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Skips missing files and files that are not executable. `dir` is AT_FDCWD for an absolute path. */
static int add_program(struct ruleset *o, int dir, const char *program)
{
	auto_close int fd = guest_path_openat(dir, program, O_PATH | O_CLOEXEC, 0);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111) ||
	    (dir != AT_FDCWD && is_user_writable(o, &st)))
		return 0;
	r = add_rule(o, fd, LANDLOCK_ACCESS_FS_EXECUTE);
	return r < 0 ? r : add_loader(o, dir, program);
}

/* Skips a directory that the user can write to: a link in it could lead anywhere. */
static void add_dir(struct ruleset *o)
{
	auto_close int fd = guest_path_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || o->ndirs >= AGENT_LANDLOCK_DIRS || fstat(fd, &st) < 0 ||
	    is_user_writable(o, &st))
		return;
	o->dirs[o->ndirs++] = steal_fd(&fd);
}

static int add_list_entry(struct ruleset *o, size_t len)
{
	int r = 0;

	if (path[0] == '/' && path[len - 1] != '/')
		return add_program(o, AT_FDCWD, path);
	if (path[0] == '/')
		add_dir(o);
	for (size_t i = 0; path[0] != '/' && r == 0 && i < o->ndirs; i++)
		r = add_program(o, o->dirs[i], path);
	return r;
}

static int add_list(struct ruleset *o, const char *list)
{
	int r = 0;

	while (r == 0 && *list) {
		size_t len = strcspn(list, ":");

		if (len && len < sizeof(path)) {
			memcpy(path, list, len);
			path[len] = '\0';
			r = add_list_entry(o, len);
		}
		list += len + (list[len] == ':');
	}
	while (o->ndirs)
		(void)close(o->dirs[--o->ndirs]);
	return r;
}

/* ---- the whole ruleset ----------------------------------------------------------------------- */

/* Landlock does not restrict memfds, so allow only memfds that cannot be executed. */
static int install_memfd_filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MEMFD_NOEXEC, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

static int add_rules(struct ruleset *o, const char *list, bool shell, uint64_t handled)
{
	auto_close int root = open("/", O_PATH | O_CLOEXEC);
	int r = 0;

	/* Moving files between directories stays allowed; ABI 2 handles REFER in every ruleset. */
	if (handled & LANDLOCK_ACCESS_FS_REFER)
		r = root < 0 ? -EACCES : add_rule(o, root, LANDLOCK_ACCESS_FS_REFER);
	if (r == 0 && shell) /* as in guest_spawn.c */
		r = add_program(o, AT_FDCWD,
				access("/bin/bash", F_OK) < 0 ? "/bin/sh" : "/bin/bash");
	return r < 0 ? r : add_list(o, list);
}

int landlock_restrict(const char *list, bool required, bool shell, const struct cred *cred)
{
	static struct ruleset o;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE };
	auto_close int rules = -1;
	int r;

	if (abi < 1 || hook_weak("landlock"))
		return required ? -ENOSYS : 0;
	if (abi >= 2)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return -errno;
	o.rules = rules;
	o.cred = cred;
	r = add_rules(&o, list, shell, attr.handled_access_fs);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return -errno;
	return install_memfd_filter();
}
