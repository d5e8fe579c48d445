/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for layers and mounts of the test, and the content of an overlay as text. */
#ifndef LODGE_TESTS_STACK_WORLD_H
#define LODGE_TESTS_STACK_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"

enum { WORLD_LAYERS = 8 };

static struct {
	bool rootless, can_mount;
	bool raw; /* layers are changed directly, not through an overlay */
	unsigned next; /* directories have numbers */
} world;

/* ---- directories and mounts, by name below the working directory ----------------------------- */

struct dirs {
	size_t n;
	char name[WORLD_LAYERS][16];
};

static inline const char *world_dir(char name[16])
{
	snprintf(name, 16, "%u", world.next++);
	return mkdir(name, 0755) == 0 ? name : NULL;
}

static inline int world_open(const char *name)
{
	return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Over `lower`, the first on top; `upper` may be NULL. Volatile: without syncs. */
static inline int world_mount(const char *at, const char *upper, const char *work,
			      const struct dirs *lower)
{
	char options[512];
	size_t n = (size_t)snprintf(options, sizeof(options), "index=off,metacopy=off,%s,lowerdir=",
				    world.rootless ? "redirect_dir=nofollow,userxattr"
						   : "redirect_dir=off");

	for (size_t i = 0; i < lower->n; i++)
		n += (size_t)snprintf(options + n, sizeof(options) - n, "%s%s", i ? ":" : "",
				      lower->name[i]);
	if (upper)
		snprintf(options + n, sizeof(options) - n, ",upperdir=%s,workdir=%s,volatile",
			 upper, work);
	return mount("overlay", at, "overlay", MS_NOATIME, options);
}

/* ---- content of a mount ---------------------------------------------------------------------- */

struct seen_link {
	ino_t ino;
	unsigned number;
};

struct view {
	FILE *to;
	bool archive; /* only what an archive preserves */
	unsigned count, nlinks;
	struct seen_link links[512];
};

static inline uint64_t view_hash(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t h = 1469598103934665603ull;
	static char buf[65536];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ (unsigned char)buf[i]) * 1099511628211ull;
	return h;
}

static inline int view_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void view_text(struct view *v, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(v->to, s[i] > ' ' && s[i] < 127 ? "%c" : "\\%02x", (unsigned char)s[i]);
}

static inline void view_xattrs(struct view *v, int dir, const char *name)
{
	static char list[65536], value[65536];
	char path[PATH_MAX], *names[256] = { NULL };
	size_t count = 0;
	ssize_t len, n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	len = llistxattr(path, list, sizeof(list));
	for (char *at = list; len > 0 && at < list + len && count < 256; at += strlen(at) + 1)
		if (!v->archive || !strncmp(at, "user.", 5))
			names[count++] = at;
	qsort(names, count, sizeof(*names), view_compare);
	for (size_t i = 0; i < count; i++) {
		n = lgetxattr(path, names[i], value, sizeof(value));
		fprintf(v->to, " %s=", names[i]);
		view_text(v, value, n > 0 ? (size_t)n : 0);
	}
}

/* Only names of visible files count. */
static inline void view_link(struct view *v, const struct stat *st)
{
	for (unsigned i = 0; i < v->nlinks; i++) {
		if (v->links[i].ino != st->st_ino)
			continue;
		fprintf(v->to, " is=%u", v->links[i].number);
		return;
	}
	if (v->nlinks < ARRAY_LEN(v->links))
		v->links[v->nlinks++] = (struct seen_link){ st->st_ino, v->count };
}

static inline void view_times(struct view *v, const struct stat *st)
{
	fprintf(v->to, " m=%lld.%09ld", (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	if (!v->archive)
		fprintf(v->to, " a=%lld.%09ld", (long long)st->st_atim.tv_sec, st->st_atim.tv_nsec);
}

static inline void view_one(struct view *v, int dir, const char *name, const char *path,
			    const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n;

	v->count++;
	view_text(v, path, strlen(path));
	fprintf(v->to, " %o %u:%u", st->st_mode, st->st_uid, st->st_gid);
	view_times(v, st);
	if (S_ISREG(st->st_mode))
		fprintf(v->to, " %lld %016llx", (long long)st->st_size,
			(unsigned long long)view_hash(dir, name));
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		fprintf(v->to, " dev=%llx", (unsigned long long)st->st_rdev);
	n = S_ISLNK(st->st_mode) ? readlinkat(dir, name, target, sizeof(target)) : 0;
	if (n > 0) {
		fprintf(v->to, " -> ");
		view_text(v, target, (size_t)n);
	}
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		view_link(v, st);
	view_xattrs(v, dir, name);
	fprintf(v->to, "\n");
}

static inline size_t view_names(int fd, char ***ret)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	char **names = calloc(4096, sizeof(*names));
	struct dirent *e;
	size_t n = 0;

	while (d && n < 4096 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			names[n++] = strdup(e->d_name);
	if (d)
		closedir(d);
	qsort(names, n, sizeof(*names), view_compare);
	*ret = names;
	return n;
}

static inline void view_dir(struct view *v, int fd, const char *path)
{
	char **names, below[PATH_MAX];
	size_t n = view_names(fd, &names);
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			/* a whiteout where an overlay would not have created one */
			if (!world.raw || errno != ENOENT)
				fprintf(v->to, "%s listed, but: %s\n", below, strerror(errno));
		} else {
			view_one(v, fd, names[i], below, &st);
			if (S_ISDIR(st.st_mode)) {
				auto_close int sub =
					openat(fd, names[i],
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

				view_dir(v, sub, below);
			}
		}
		free(names[i]);
	}
	free(names);
}

/* The caller frees it. */
static inline char *view_of(int fd, bool archive)
{
	struct view *v = calloc(1, sizeof(*v));
	char *text = NULL;
	size_t len;
	struct stat st;

	v->to = open_memstream(&text, &len);
	v->archive = archive;
	if (!archive && fstat(fd, &st) == 0)
		view_one(v, fd, ".", "/", &st);
	view_dir(v, fd, "");
	fclose(v->to);
	free(v);
	return text;
}

static inline char *view_mounted(const char *upper, const char *work, const struct dirs *lower,
				 bool archive)
{
	char *text;
	int fd;

	if (world_mount("m", upper, work, lower) < 0) {
		printf("# overlay: %s\n", strerror(errno));
		return NULL;
	}
	fd = world_open("m");
	text = view_of(fd, archive);
	close(fd);
	if (umount2("m", 0) < 0) {
		printf("# umount: %s\n", strerror(errno));
		umount2("m", MNT_DETACH);
	}
	return text;
}

/* Prints the first line that differs. */
static inline bool view_same(const char *a, const char *b, const char *what)
{
	size_t i = 0, at = 0;

	if (a && b && !strcmp(a, b))
		return true;
	for (; a && b && a[i] && a[i] == b[i]; i++)
		if (a[i] == '\n')
			at = i + 1;
	printf("# %s:\n#   want %.*s\n#   got  %.*s\n", what, a ? (int)strcspn(a + at, "\n") : 4,
	       a ? a + at : "none", b ? (int)strcspn(b + at, "\n") : 4, b ? b + at : "none");
	return false;
}

#endif
