/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "tmp_name.h"

static char top[TMP_NAME_SIZE];
static int dir = -1;

static bool is_there(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int put(const char *name, const char *text)
{
	return file_replace_at(dir, name, text, strlen(text));
}

static void a_replaced_file_is_complete_and_leaves_no_other(void)
{
	char buf[16];

	CHECK(put("f", "one") == 0);
	CHECK(put("f", "three") == 0);
	CHECK(file_read_at(dir, "f", buf, sizeof(buf)) == 5);
	CHECK_STR(buf, "three");
	CHECK(!is_there(".f.new"));
	CHECK(unlinkat(dir, "f", 0) == 0);
}

static void a_failed_replace_keeps_the_old(void)
{
	CHECK(mkdirat(dir, "d", 0700) == 0);
	CHECK(put("d/x", "y") < 0);
	CHECK(put("d", "text") == -EISDIR);
	CHECK(!is_there(".d.new"));
	CHECK(unlinkat(dir, "d", AT_REMOVEDIR) == 0);
}

static void replace_does_not_follow_a_link(void)
{
	CHECK(put("victim", "mine") == 0);
	CHECK(symlinkat("victim", dir, ".f.new") == 0);
	CHECK(put("f", "text") == -ELOOP);
	char buf[16];

	CHECK(file_read_at(dir, "victim", buf, sizeof(buf)) == 4);
	CHECK(file_remove_tree_at(dir, "victim") == 0);
	CHECK(file_remove_tree_at(dir, ".f.new") == 0);
}

static void reading_stops_at_the_buffer(void)
{
	char buf[4];

	CHECK(put("f", "abcdef") == 0);
	CHECK(file_read_at(dir, "f", buf, sizeof(buf)) == 3);
	CHECK_STR(buf, "abc");
	CHECK(file_read_at(dir, "missing", buf, sizeof(buf)) == -ENOENT);
	CHECK(unlinkat(dir, "f", 0) == 0);
}

static void printf_writes_once_or_not_at_all(void)
{
	char buf[16], text[400];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	CHECK(put("f", "") == 0);
	CHECK(file_printf_at(dir, "f", "%d %s", 7, "x") == 0);
	CHECK(file_read_at(dir, "f", buf, sizeof(buf)) == 3);
	CHECK(file_printf_at(dir, "f", "%s", text) == -EINVAL);
	CHECK(file_printf_at(dir, "missing", "x") == -ENOENT);
	CHECK(unlinkat(dir, "f", 0) == 0);
}

static void a_number_is_found_by_its_key(void)
{
	uint64_t v = 99;

	CHECK(file_number_in("low 1\noom_kill 3\noom 4\n", "oom", &v) == 0 && v == 4);
	CHECK(file_number_in("low 1\noom_kill 3\n", "oom_kill", &v) == 0 && v == 3);
	CHECK(file_number_in("18446744073709551615\n", "", &v) == 0 && v == UINT64_MAX);
	v = 99;
	CHECK(file_number_in("low 1\n", "high", &v) == -ENOENT && v == 99);
	CHECK(file_number_in("max\n", "", &v) == -EINVAL && v == 99);
	CHECK(file_number_in("18446744073709551616\n", "", &v) == -EINVAL && v == 99);
	CHECK(file_number_in("", "x", &v) == -ENOENT);
}

static void any_tree_is_removed(void)
{
	CHECK(mkdirat(dir, "t", 0700) == 0);
	CHECK(mkdirat(dir, "t/a", 0700) == 0);
	CHECK(put("keep", "k") == 0);
	CHECK(symlinkat("../../keep", dir, "t/a/link") == 0);
	CHECK(symlinkat("..", dir, "t/up") == 0);
	CHECK(mkfifoat(dir, "t/fifo", 0600) == 0);
	CHECK(file_remove_tree_at(dir, "t") == 0);
	CHECK(!is_there("t") && is_there("keep"));
	CHECK(file_remove_tree_at(dir, "keep") == 0);
	CHECK(file_remove_tree_at(dir, "t") == 0); /* removing it again succeeds */
}

/* Deeper than the limit of descriptors, and longer than PATH_MAX. */
static void a_very_deep_tree_is_removed(void)
{
	int at = dir, next;

	for (int i = 0; i < 3000; i++) {
		CHECK(mkdirat(at, "deep", 0700) == 0);
		next = openat(at, "deep", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		CHECK(next >= 0);
		if (at != dir)
			close(at);
		at = next;
	}
	close(at);
	CHECK(file_remove_tree_at(dir, "deep") == 0);
	CHECK(!is_there("deep") && !is_there("deep.deep0"));
}

static void a_neighbour_of_a_similar_name_stays(void)
{
	CHECK(mkdirat(dir, "foo", 0755) == 0 && mkdirat(dir, "foo.deep", 0755) == 0);
	CHECK(file_remove_tree_at(dir, "foo") == 0);
	CHECK(faccessat(dir, "foo.deep", F_OK, 0) == 0);
	CHECK(unlinkat(dir, "foo.deep", AT_REMOVEDIR) == 0);
}

static void a_mount_below_is_not_entered(void)
{
	char path[64];

	CHECK(mkdirat(dir, "t", 0700) == 0);
	CHECK(mkdirat(dir, "t/mnt", 0700) == 0);
	snprintf(path, sizeof(path), "%s/t/mnt", top);
	if (mount("none", path, "tmpfs", 0, NULL) < 0) {
		CHECK(file_remove_tree_at(dir, "t") == 0);
		SKIP("needs the right to mount");
	}
	int made = mkdirat(dir, "t/mnt/x", 0700), removed = file_remove_tree_at(dir, "t");
	bool kept = is_there("t/mnt/x");

	CHECK(umount(path) == 0);
	CHECK(made == 0 && removed == -EXDEV && kept);
	CHECK(file_remove_tree_at(dir, "t") == 0);
}

static int count_to_two(int at, const char *name, void *arg)
{
	int *n = arg;

	return at >= 0 && name[0] != '.' && ++*n == 2 ? 42 : 0;
}

static void file_each_stops_on_request(void)
{
	int n = 0;

	CHECK(mkdirat(dir, "t", 0700) == 0);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "t/%d", i);
		CHECK(mkdirat(dir, name, 0700) == 0);
	}
	CHECK(file_each_at(dir, "t", count_to_two, &n) == 42 && n == 2);
	CHECK(file_each_at(dir, "missing", count_to_two, &n) == -ENOENT);
	CHECK(file_remove_tree_at(dir, "t") == 0);
}

int main(void)
{
	if (!mkdtemp(tmp_name(top, "lodge-test")) ||
	    (dir = open(top, O_DIRECTORY | O_RDONLY | O_CLOEXEC)) < 0)
		return 99;
	RUN(a_replaced_file_is_complete_and_leaves_no_other);
	RUN(a_failed_replace_keeps_the_old);
	RUN(replace_does_not_follow_a_link);
	RUN(reading_stops_at_the_buffer);
	RUN(printf_writes_once_or_not_at_all);
	RUN(a_number_is_found_by_its_key);
	RUN(any_tree_is_removed);
	RUN(a_very_deep_tree_is_removed);
	RUN(a_neighbour_of_a_similar_name_stays);
	RUN(a_mount_below_is_not_entered);
	RUN(file_each_stops_on_request);
	close(dir);
	rmdir(top);
	return tap_done();
}
