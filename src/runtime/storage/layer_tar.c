/* SPDX-License-Identifier: Apache-2.0 */
/* Writes entries in the order of the walk. A reader of the archive empties a directory when it
 * finds its opaque mark, so the mark comes before the entries of the directory. */
#include "runtime/storage/layer_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/pax.h"
#include "runtime/storage/layer_attr.h"
#include "runtime/storage/layer_links.h"
#include "runtime/storage/layer_walk.h"

#define WHITEOUT ".wh."

struct tar {
	struct pax pax;
	struct layer_links links;
	struct layer_attrs attrs;
	char buf[64 * 1024];
};

/* ---- attributes ------------------------------------------------------------------------------ */

/* Writes attributes as the guest sees them: without those of the overlay, and overlay marks of the
 * guest without the prefix that the overlay added. */
static int add_attr(void *arg, const char *name, const void *value, size_t len)
{
	static const char own[] = "overlay.";
	struct tar *t = arg;
	const char *mark = layer_attr_mark(t->attrs.user, name);
	char key[sizeof(PAX_XATTR) + XATTR_NAME_MAX + 1];

	if (mark && strncmp(mark, own, sizeof(own) - 1) != 0)
		return 0;
	if (strchr(name, '='))
		return -EILSEQ;
	snprintf(key, sizeof(key), PAX_XATTR "%.*s%s", mark ? (int)(mark - name) : 0, name,
		 mark ? mark + sizeof(own) - 1 : name);
	return pax_record(&t->pax, key, value, len);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int put_plain(struct tar *t, const char *path, char type, const char *link,
		     const struct stat *st)
{
	struct pax_entry e = { path, link, type, 0, st };

	return pax_entry(&t->pax, &e);
}

/* Writes a whiteout for `name`, or an opaque mark for the directory if name is "". */
static int put_mark(struct tar *t, const char *path, const char *name, const struct stat *st)
{
	struct stat plain = { .st_mode = 0600, .st_uid = st->st_uid, .st_gid = st->st_gid };
	size_t dir = strlen(path) - strlen(name), size = dir + strlen(name) + 32;
	auto_free char *whole = malloc(size);

	if (!whole)
		return -ENOMEM;
	snprintf(whole, size, "%.*s" WHITEOUT "%s", (int)dir, path, *name ? name : ".wh..opq");
	return put_plain(t, whole, '0', "", &plain);
}

static int check_name(const char *name)
{
	return strncmp(name, WHITEOUT, sizeof(WHITEOUT) - 1) == 0 ? -EILSEQ : 0;
}

static int put_whiteout(void *arg, const struct layer_walk_item *i)
{
	int r = check_name(i->name);

	return r < 0 ? r : put_mark(arg, i->path, i->name, &i->st);
}

static int put_data(struct tar *t, int fd, off_t at, off_t end)
{
	int r = 0;

	while (at < end && r == 0) {
		size_t left = (size_t)(end - at);
		ssize_t n = pread(fd, t->buf, left < sizeof(t->buf) ? left : sizeof(t->buf), at);

		if (n < 0)
			return -errno;
		if (n == 0) /* the file was truncated */
			return pax_zeros(&t->pax, left);
		r = pax_bytes(&t->pax, t->buf, (size_t)n);
		at += n;
	}
	return r;
}

/* Writes exactly as many bytes as the header says. Does not read holes. */
static int put_content(struct tar *t, int fd, off_t size)
{
	off_t at = 0, data, end;
	int r = 0;

	while (at < size && r == 0) {
		data = lseek(fd, at, SEEK_DATA);
		if (data < 0 && errno != ENXIO && errno != EINVAL)
			return -errno;
		if (data < 0)
			data = errno == ENXIO ? size : at;
		end = data < size ? lseek(fd, data, SEEK_HOLE) : size;
		data = data < size ? data : size;
		end = end < 0 || end > size ? size : end;
		r = pax_zeros(&t->pax, (uint64_t)(data - at));
		if (r == 0)
			r = put_data(t, fd, data, end);
		at = end;
	}
	return r < 0 ? r : pax_pad(&t->pax, (uint64_t)size);
}

static int put_file(struct tar *t, const struct layer_walk_item *i)
{
	auto_close int fd = layer_walk_open(i->dir, i->name, O_RDONLY);
	struct stat st;
	struct pax_entry e = { i->path, "", '0', 0, &st };
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	e.size = (uint64_t)st.st_size;
	r = layer_attr_each(&t->attrs, &(struct layer_attr_of){ .fd = fd }, add_attr, t);
	if (r == 0)
		r = pax_entry(&t->pax, &e);
	return r < 0 ? r : put_content(t, fd, st.st_size);
}

static char type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return '2';
	case S_IFCHR:
		return '3';
	case S_IFBLK:
		return '4';
	case S_IFIFO:
		return '6';
	default:
		return 0;
	}
}

static int put_other(struct tar *t, const struct layer_walk_item *i)
{
	struct layer_attr_of of = { .dir = i->dir, .name = i->name };
	char target[PATH_MAX + 1] = "", type = type_of(i->st.st_mode);
	ssize_t n = 0;
	int r;

	if (!type)
		return -ESTALE;
	if (type == '2')
		n = readlinkat(i->dir, i->name, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	r = layer_attr_each(&t->attrs, &of, add_attr, t);
	return r < 0 ? r : put_plain(t, i->path, type, target, &i->st);
}

static int put_entry(void *arg, const struct layer_walk_item *i)
{
	struct tar *t = arg;
	const char *first;
	int r = check_name(i->name);

	if (r < 0)
		return r;
	if (S_ISSOCK(i->st.st_mode))
		return i->alone ? 0 : put_mark(t, i->path, i->name, &i->st);
	if (i->st.st_nlink > 1)
		r = layer_links_add(&t->links, i->layer, &i->st, i->path, &first);
	if (r < 0)
		return r;
	if (r == 1)
		return put_plain(t, i->path, '1', first, &i->st);
	return S_ISREG(i->st.st_mode) ? put_file(t, i) : put_other(t, i);
}

static int enter_dir(void *arg, const struct layer_walk_dir *d)
{
	struct tar *t = arg;
	int r = check_name(d->name);

	if (r == 0)
		r = layer_attr_each(&t->attrs, &(struct layer_attr_of){ .fd = d->fd }, add_attr, t);
	if (r == 0)
		r = put_plain(t, *d->path ? d->path : "./", '5', "", &d->st);
	if (r == 0 && d->opaque)
		r = put_mark(t, d->path, "", &d->st);
	return r;
}

int layer_tar(const int *layers, size_t n, int fd)
{
	static const struct layer_walk_ops ops = { enter_dir, NULL, put_entry, put_whiteout };
	auto_free struct tar *t = calloc(1, sizeof(*t));
	auto_close int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	int r;

	if (!t)
		return -ENOMEM;
	t->pax.out.fd = fd;
	t->attrs.user = layer_attr_is_user();
	layer_links_init(&t->links);
	sigaction(SIGPIPE, &ignore, &before); /* a reader that exits is an EPIPE */
	r = layer_walk(layers, n, &ops, t);
	if (r == 0)
		r = pax_end(&t->pax);
	sigaction(SIGPIPE, &before, NULL);
	layer_links_free(&t->links);
	if (cwd >= 0)
		(void)!fchdir(cwd);
	return r;
}
