/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of overlayfs, one by one. */
#ifndef LODGE_TESTS_STACK_RULES_H
#define LODGE_TESTS_STACK_RULES_H

#include "layer_stack_history.h"

#define OPAQUE "trusted.overlay.opaque"
#define ORIGIN "trusted.overlay.origin"

static void a_directory_over_a_whiteout_hides_the_template(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && white(h.l, "d") == 0);
	CHECK(hand_merges(&h));
	CHECK(has_mark(h.dest, "d", OPAQUE));
}

static void a_directory_over_a_file_hides_the_template(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && put_in(h.l, "d", "file") == 0);
	CHECK(hand_merges(&h));
	CHECK(has_mark(h.dest, "d", OPAQUE));
}

static void a_directory_over_nothing_shows_the_template(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && put_in(h.u, "d/x", "x") == 0);
	CHECK(hand_merges(&h));
	CHECK(!has_mark(h.dest, "d", OPAQUE) && is_there(h.dest, "d/x"));
}

static void nothing_below_an_opaque_directory_is_merged(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && mark(h.u, "d", OPAQUE, "y") == 0);
	CHECK(white(h.u, "d/gone") == 0 && put_in(h.u, "d/sub", NULL) == 0);
	CHECK(put_in(h.l, "d", NULL) == 0 && put_in(h.l, "d/hidden", "x") == 0);
	CHECK(merge(&h.layers, h.dest) == 0 && has_mark(h.dest, "d", OPAQUE));
	CHECK(!is_there(h.dest, "d/hidden") && !is_there(h.dest, "d/gone"));
	CHECK(!has_mark(h.dest, "d/sub", OPAQUE));
}

/* Over a template without the directory the overlay would list the whiteout in it. */
static void a_whiteout_is_never_visible(void)
{
	struct hand h;
	char empty[16];

	ROOT_ONLY();
	hand_new(&h);
	push(&h.templates, world_dir(empty));
	CHECK(put_in(h.u, "d", NULL) == 0 && white(h.u, "d/of-template") == 0);
	CHECK(put_in(h.l, "d", NULL) == 0 && put_in(h.l, "d/y", "y") == 0);
	CHECK(hand_merges(&h));
	CHECK(has_mark(h.dest, "d", ORIGIN) && !has_mark(h.dest, ".", ORIGIN));
}

static void the_top_of_a_layer_is_never_opaque(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(mark(h.u, ".", OPAQUE, "y") == 0 && put_in(h.l, "x", "x") == 0);
	CHECK(hand_merges(&h));
	CHECK(is_there(h.dest, "x") && !has_mark(h.dest, ".", OPAQUE));
}

static void a_whiteout_may_be_an_attribute(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && mark(h.u, "d", OPAQUE, "x") == 0);
	CHECK(put_in(h.u, "d/of-template", "") == 0 && put_in(h.u, "d/empty", "") == 0);
	CHECK(mark(h.u, "d/of-template", "trusted.overlay.whiteout", "") == 0);
	CHECK(put_in(h.l, "d", NULL) == 0 && put_in(h.l, "d/of-template", "lower") == 0);
	CHECK(merge(&h.layers, h.dest) == 0);

	struct stat st;

	CHECK(stat_in(h.dest, "d/of-template", &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(stat_in(h.dest, "d/empty", &st) == 0 && S_ISREG(st.st_mode));
	CHECK(!has_mark(h.dest, "d", OPAQUE));
}

static void attributes_of_the_old_stack_are_dropped_and_others_kept(void)
{
	static const char *const gone[] = { "impure", "nlink", "uuid", "origin", "upper" };
	static const char *const kept[] = { "protattr", "overlay.opaque" };
	struct hand h;
	char name[64];

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "f", "f") == 0 && mark(h.u, "f", "user.overlay.opaque", "y") == 0);
	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		snprintf(name, sizeof(name), "trusted.overlay.%s", gone[i]);
		CHECK(mark(h.u, "f", name, "y") == 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		snprintf(name, sizeof(name), "trusted.overlay.%s", kept[i]);
		CHECK(mark(h.u, "f", name, "y") == 0);
	}
	CHECK(merge(&h.layers, h.dest) == 0);
	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		snprintf(name, sizeof(name), "trusted.overlay.%s", gone[i]);
		CHECK(!has_mark(h.dest, "f", name));
	}
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		snprintf(name, sizeof(name), "trusted.overlay.%s", kept[i]);
		CHECK(has_mark(h.dest, "f", name));
	}
	CHECK(has_mark(h.dest, "f", "user.overlay.opaque"));
}

static void an_attribute_set_by_the_guest_hides_nothing(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "d", NULL) == 0 && put_in(h.l, "d", NULL) == 0);
	CHECK(mark(h.u, "d", "user.overlay.opaque", "y") == 0 && put_in(h.l, "d/x", "x") == 0);
	CHECK(hand_merges(&h));
	CHECK(is_there(h.dest, "d/x"));
}

static void a_layer_with_redirects_is_refused(void)
{
	struct hand h;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.l, "d", NULL) == 0);
	CHECK(mark(h.l, "d", "trusted.overlay.redirect", "/elsewhere") == 0);
	CHECK(merge(&h.layers, h.dest) == -EOPNOTSUPP && archive(&h.layers, "t") == -EOPNOTSUPP);
}

static void the_number_of_layers_is_limited(void)
{
	int fds[LAYER_WALK_LAYERS_MAX + 1] = { 0 };

	CHECK(layer_copy(fds, 0, -1) == -EBADF);
	fds[0] = world_open(".");
	for (unsigned i = 1; i < ARRAY_LEN(fds); i++)
		fds[i] = fds[0];
	CHECK(layer_tar(fds, 0, -1) == -EINVAL);
	CHECK(layer_tar(fds, ARRAY_LEN(fds), -1) == -E2BIG);
	close(fds[0]);
}

#endif
