/* SPDX-License-Identifier: Apache-2.0 */
/* Layers made by hand or at random, merged, and compared through the kernel's overlay. */
#ifndef LODGE_TESTS_STACK_STORY_H
#define LODGE_TESTS_STACK_STORY_H

#include "init/files/tar_head.h"
#include "init/files/tar_read.h"
#include "runtime/storage/layer_copy.h"
#include "runtime/storage/layer_stack.h"
#include "runtime/storage/layer_tar.h"
#include "layer_stack_random.h"
#include "tap.h"

#define ROOT_ONLY()                                                                                \
	do {                                                                                       \
		if (!world.can_mount)                                                              \
			SKIP("no rights to mount");                                                \
	} while (0)

/* ---- small trees by hand --------------------------------------------------------------------- */

static int put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -errno : 0;
}

static int put_in(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return text ? put(path, text) : mkdir(path, 0755);
}

static int white(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return mknod(path, S_IFCHR, makedev(0, 0));
}

static int mark(const char *dir, const char *name, const char *attr, const char *value)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lsetxattr(path, attr, value, strlen(value), 0);
}

static bool has_mark(const char *dir, const char *name, const char *attr)
{
	char path[PATH_MAX], value[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lgetxattr(path, attr, value, sizeof(value)) >= 0;
}

static int stat_in(const char *dir, const char *name, struct stat *st)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, st);
}

static bool is_there(const char *dir, const char *name)
{
	struct stat st;

	return stat_in(dir, name, &st) == 0;
}

/* ---- merging --------------------------------------------------------------------------------- */

static size_t open_all(const struct dirs *d, int *fds)
{
	for (size_t i = 0; i < d->n; i++)
		fds[i] = world_open(d->name[i]);
	return d->n;
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static int merge(const struct dirs *layers, char dest[16])
{
	int fds[WORLD_LAYERS], r;
	size_t n = open_all(layers, fds);
	auto_close int to = world_open(world_dir(dest));

	r = layer_copy(fds, n, to);
	close_all(fds, n);
	return r;
}

static int archive(const struct dirs *layers, const char *file)
{
	auto_close int to = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int fds[WORLD_LAYERS], r;
	size_t n = open_all(layers, fds);

	r = layer_tar(fds, n, to);
	close_all(fds, n);
	return r;
}

static void push(struct dirs *d, const char *name)
{
	snprintf(d->name[d->n++], sizeof(d->name[0]), "%s", name);
}

static struct dirs part(const struct dirs *d, size_t from, size_t to)
{
	struct dirs r = { 0 };

	for (size_t i = from; i < to; i++)
		push(&r, d->name[i]);
	return r;
}

/* Puts one merged layer in place of those from `from` to `to`. */
struct merged {
	char dest[16];
	size_t from, to;
};

static char *view_over(const struct dirs *layers, const char *template)
{
	struct dirs all = part(layers, 0, layers->n);

	push(&all, template);
	return view_mounted(NULL, NULL, &all, false);
}

static bool shows(const char *want, const struct dirs *layers, const struct merged *m,
		  const char *template)
{
	struct dirs with = part(layers, 0, m->from);

	push(&with, m->dest);
	for (size_t i = m->to; i < layers->n; i++)
		push(&with, layers->name[i]);

	auto_free char *got = view_over(&with, template);

	return view_same(want, got, template);
}

static bool merge_shows_same(const struct dirs *layers, const struct dirs *templates,
			     const struct merged *m, size_t n)
{
	for (size_t t = 0; t < templates->n; t++) {
		auto_free char *want = view_over(layers, templates->name[t]);

		for (size_t i = 0; i < n; i++)
			if (!shows(want, layers, &m[i], templates->name[t]))
				return false;
	}
	return true;
}

/* A template with one directory, and two layers over it. */
struct hand {
	char t[16], u[16], l[16], dest[16]; /* template, upper, lower */
	struct dirs layers, templates;
};

static void hand_new(struct hand *h)
{
	*h = (struct hand){ 0 };
	push(&h->templates, world_dir(h->t));
	push(&h->layers, world_dir(h->u));
	push(&h->layers, world_dir(h->l));
	put_in(h->t, "d", NULL);
	put_in(h->t, "d/of-template", "t");
}

static bool hand_merges(struct hand *h)
{
	struct merged m = { "", 0, h->layers.n };

	if (merge(&h->layers, h->dest) < 0)
		return false;
	memcpy(m.dest, h->dest, sizeof(m.dest));
	return merge_shows_same(&h->layers, &h->templates, &m, 1);
}

/* ---- random stacks --------------------------------------------------------------------------- */

struct story {
	struct dirs layers; /* the first on top */
	struct dirs templates; /* the original one, an empty one, and another */
};

static int make_random_template(struct dirs *to, unsigned changes)
{
	char name[16];
	auto_close int fd = world_open(world_dir(name));

	change_some(fd, changes);
	push(to, name);
	return fd < 0 ? -1 : 0;
}

/* Any content, including what an overlay would never create. */
static int make_raw_layer(struct story *s)
{
	int r = make_random_template(&s->layers, 20 + dice(60));

	return r < 0 ? -errno : 0;
}

static int make_random_layer(struct story *s)
{
	struct dirs lower = part(&s->layers, 0, s->layers.n), with = { 0 };
	char upper[16], work[16];
	int fd;

	push(&lower, s->templates.name[0]);
	if (world_mount("m", world_dir(upper), world_dir(work), &lower) < 0)
		return -errno;
	fd = world_open("m");
	change_some(fd, 5 + dice(40));
	close(fd);
	push(&with, upper);
	for (size_t i = 0; i < s->layers.n; i++)
		push(&with, s->layers.name[i]);
	s->layers = with;
	return umount2("m", 0) < 0 ? -errno : 0;
}

static int make_random_stack(struct story *s, unsigned seed)
{
	int r = 0;

	*s = (struct story){ 0 };
	dice_state = seed;
	make_random_template(&s->templates, 10 + dice(40));
	make_random_template(&s->templates, 0);
	make_random_template(&s->templates, 40);
	for (unsigned n = 1 + dice(4); n && r == 0; n--)
		r = world.raw ? make_raw_layer(s) : make_random_layer(s);
	return r;
}

/* Merges all at once, merges a merged layer again, merges some, and uses a merged layer as upper.
 */
static bool stack_merges(const struct story *s)
{
	size_t n = s->layers.n, from = dice((unsigned)n),
	       to = from + 1 + dice((unsigned)(n - from));
	struct merged m[] = { { "", 0, n }, { "", 0, n }, { "", from, to } };
	struct dirs some = part(&s->layers, from, to), one = { 0 },
		    below = part(&s->templates, 0, 1);
	char work[16];
	int r = merge(&s->layers, m[0].dest);

	push(&one, m[0].dest);
	if (r == 0)
		r = merge(&one, m[1].dest);
	if (r == 0)
		r = merge(&some, m[2].dest);
	if (r < 0)
		printf("# stack_copy: %s\n", strerror(-r));
	if (r < 0 || !merge_shows_same(&s->layers, &s->templates, m, ARRAY_LEN(m)))
		return false;

	auto_free char *want = view_over(&s->layers, s->templates.name[0]);
	auto_free char *got = view_mounted(m[0].dest, world_dir(work), &below, false);

	return view_same(want, got, "as the upper layer");
}

static void clean_world(void)
{
	auto_close int here = world_open(".");
	char name[16];

	for (unsigned i = 0; i < world.next; i++) {
		snprintf(name, sizeof(name), "%u", i);
		(void)file_remove_tree_at(here, name);
	}
	world.next = 0;
}

static bool random_stacks(unsigned first, unsigned count, bool (*holds)(const struct story *))
{
	struct story s;

	for (unsigned seed = first; seed < first + count; seed++) {
		int r = make_random_stack(&s, seed);

		if (r < 0 || !holds(&s)) {
			printf("# seed %u: %s\n", seed, r < 0 ? strerror(-r) : "differs");
			return false;
		}
		clean_world();
	}
	return true;
}

static bool stack_survives_an_archive(const struct story *s)
{
	struct dirs all = part(&s->layers, 0, s->layers.n), below = part(&s->templates, 0, 1);
	struct tar_options o = { .oci = true, .owners = true };
	struct err err = { 0 };
	char upper[16], work[16];
	char *want, *got;
	bool same;
	int r = archive(&s->layers, "t"), in, m;

	push(&all, s->templates.name[0]);
	if (r < 0 || world_mount("m", world_dir(upper), world_dir(work), &below) < 0) {
		printf("# stack_tar: %s\n", strerror(-r));
		return false;
	}
	in = open("t", O_RDONLY | O_CLOEXEC);
	m = world_open("m");
	if (tar_extract(in, m, &o, &err) < 0)
		printf("# %s\n", err.msg);
	got = view_of(m, true);
	close(m);
	close(in);
	umount2("m", 0);
	want = view_mounted(NULL, NULL, &all, true);
	same = view_same(want, got, "archive");
	free(want);
	free(got);
	return same;
}

#endif
