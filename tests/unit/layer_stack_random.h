/* SPDX-License-Identifier: Apache-2.0 */
/* Random changes of every kind that a guest can make; the seed decides the order. */
#ifndef LODGE_TESTS_STACK_RANDOM_H
#define LODGE_TESTS_STACK_RANDOM_H

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/array.h"
#include "layer_stack_fixture.h"

static uint64_t dice_state;
static bool dice_archive; /* only what an archive preserves */

static inline unsigned dice(unsigned sides)
{
	dice_state += 0x9e3779b97f4a7c15u;
	uint64_t v = dice_state;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return (unsigned)((v ^ v >> 31) % sides);
}

static const char *const dice_names[] = { "a",	    "b",	 "c",	     "d",   "e",
					  "sp ace", "new\nline", "\xff\xfe", ".wh", "-rf" };

static inline const char *dice_name(void)
{
	return dice_names[dice(dice(3) ? 5 : ARRAY_LEN(dice_names))];
}

/* A directory somewhere below; the caller closes it. */
static inline int dice_dir(int root)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned levels = dice(4); levels && fd >= 0; levels--) {
		int next = openat(fd, dice_name(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			continue;
		close(fd);
		fd = next;
	}
	return fd;
}

static inline void change_create(int dir, const char *name)
{
	auto_close int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	char text[3000];

	memset(text, 'A' + (int)dice(26), sizeof(text));
	if (fd < 0)
		return;
	if (dice(4) == 0)
		(void)!ftruncate(fd, (off_t)dice(60000));
	(void)!pwrite(fd, text, dice(sizeof(text)), dice(3) ? 0 : (off_t)dice(40000));
}

static inline void change_remove(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) < 0)
		(void)file_remove_tree_at(dir, name);
}

static inline void change_mkdir(int dir, const char *name)
{
	if (dice(2))
		change_remove(dir, name);
	(void)mkdirat(dir, name, 0700 | dice(0100));
}

static inline void change_symlink(int dir, const char *name)
{
	static const char *const targets[] = { "a", "/etc/passwd", "../../../..", "b/c",
					       "nowhere" };

	if (dice(2))
		change_remove(dir, name);
	(void)symlinkat(targets[dice(ARRAY_LEN(targets))], dir, name);
}

static inline void change_special(int dir, const char *name)
{
	static const mode_t kinds[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };
	unsigned kind = dice(world.rootless ? 2 : 4);

	if (dice_archive)
		return;
	if (dice(2))
		change_remove(dir, name);
	(void)mknodat(dir, name, kinds[kind] | 0640, kind < 2 ? 0 : makedev(1, 3 + dice(5)));
}

static inline void change_mark(int dir, const char *name)
{
	auto_close int fd = -1;

	if (dice(2)) {
		change_remove(dir, name);
		(void)mknodat(dir, name, S_IFCHR, makedev(0, 0));
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		(void)fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0);
}

static inline void change_link(int dir, const char *name, int root)
{
	auto_close int to = dice_dir(root);

	(void)linkat(dir, name, to, dice_name(), 0);
}

static inline void change_rename(int dir, const char *name, int root)
{
	auto_close int to = dice_dir(root);

	(void)renameat(dir, name, to, dice_name());
}

/* user::rwx, user:7:r--, group::r-x, mask::r-x, other::--- */
static const unsigned char some_acl[] = { 2,   0,   0,	 0,   1,   0,	7,  0,	 255, 255, 255,
					  255, 2,   0,	 4,   0,   7,	0,  0,	 0,   4,   0,
					  5,   0,   255, 255, 255, 255, 16, 0,	 5,   0,   255,
					  255, 255, 255, 32,  0,   0,	0,  255, 255, 255, 255 };
/* cap_net_raw+ep, as on disk */
static const unsigned char some_caps[] = { 1, 0, 0, 2, 0, 32, 0, 0, 0, 0,
					   0, 0, 0, 0, 0, 0,  0, 0, 0, 0 };

static inline void change_xattr(int dir, const char *name)
{
	static const char *const names[] = { "user.one",	 "user.two",
					     "trusted.three",	 "user.overlay.opaque",
					     "user.overlay.own", "trusted.overlay.opaque" };
	char path[300];
	const char *attr = names[dice(ARRAY_LEN(names))];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (dice_archive && (S_ISDIR(st.st_mode) || strstr(attr, "overlay")))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	switch (dice(5)) {
	case 0:
		(void)lremovexattr(path, attr);
		break;
	case 1:
		if (!dice_archive)
			(void)lsetxattr(path, "system.posix_acl_access", some_acl, sizeof(some_acl),
					0);
		break;
	case 2:
		if (!dice_archive)
			(void)lsetxattr(path,
					S_ISDIR(st.st_mode) ? "system.posix_acl_default"
							    : "security.capability",
					S_ISDIR(st.st_mode) ? some_acl : some_caps,
					S_ISDIR(st.st_mode) ? sizeof(some_acl) : sizeof(some_caps),
					0);
		break;
	default:
		(void)lsetxattr(path, attr, "y\0z", dice(4), 0);
	}
}

static inline void change_metadata(int dir, const char *name)
{
	struct timespec times[2] = { { dice(2000000000), dice(1000000000) },
				     { dice(2000000000), dice(1000000000) } };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (dice(2) && !S_ISLNK(st.st_mode))
		(void)fchmodat(dir, name, dice(010000), 0);
	if (dice(2) && !world.rootless)
		(void)fchownat(dir, name, dice(3000), dice(2) ? 3000000000u : dice(3000),
			       AT_SYMLINK_NOFOLLOW);
	if (dice(2))
		(void)utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

static inline void change_one(int root)
{
	auto_close int dir = dice_dir(root);
	const char *name = dice_name();

	switch (dice(12)) {
	case 0:
	case 1:
		change_create(dir, name);
		break;
	case 2:
	case 3:
		change_mkdir(dir, name);
		break;
	case 4:
		change_remove(dir, name);
		break;
	case 5:
		change_remove(dir, name);
		change_create(dir, name);
		break;
	case 6:
		change_symlink(dir, name);
		break;
	case 7:
		(world.raw ? change_mark : change_special)(dir, name);
		break;
	case 8:
		change_link(dir, name, root);
		break;
	case 9:
		change_rename(dir, name, root);
		break;
	case 10:
		change_xattr(dir, name);
		break;
	default:
		change_metadata(dir, name);
	}
}

static inline void change_some(int root, unsigned count)
{
	while (count--)
		change_one(root);
}

#endif
