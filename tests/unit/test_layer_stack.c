/* SPDX-License-Identifier: Apache-2.0 */
/* A layer merged from a stack must look the same through an overlay as the stack, over any
 * template. All results are mounted and compared. */
#include "runtime/storage/layer_copy.h"
#include "runtime/storage/layer_stack.h"
#include "runtime/storage/layer_tar.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "init/files/tar_head.h" /* the reader of our archives */
#include "init/files/tar_read.h"
#include "layer_stack_hostile.h"
#include "layer_stack_rules.h"
#include "layer_stack_history.h"
#include "tap.h"
#include "tmp_name.h"

static char top[TMP_NAME_SIZE], disk[TMP_NAME_SIZE + 8];

/* ---- files ----------------------------------------------------------------------------------- */

static int open_in(const char *dir, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void holes_are_preserved(void)
{
	auto_close int from = -1, to = -1;
	struct hand h;
	struct stat st;
	char text[8] = "";

	hand_new(&h);
	CHECK(put_in(h.u, "big", "begin") == 0);
	from = open_in(h.u, "big");
	CHECK(pwrite(from, "middle", 6, (off_t)1 << 38) == 6);
	CHECK(ftruncate(from, (off_t)1 << 40) == 0);
	CHECK(merge(&h.layers, h.dest) == 0);
	to = open_in(h.dest, "big");
	CHECK(fstat(to, &st) == 0 && st.st_size == (off_t)1 << 40 && st.st_blocks <= 64);
	CHECK(pread(to, text, 6, (off_t)1 << 38) == 6 && !strcmp(text, "middle"));
	CHECK(pread(to, text, 6, 0) == 6 && !memcmp(text, "begin", 6));
}

static void hard_links_are_within_one_layer(void)
{
	struct stat a, b, c;
	struct hand h;
	char from[64], to[64];

	hand_new(&h);
	CHECK(put_in(h.u, "a", "one") == 0 && put_in(h.u, "d", NULL) == 0);
	CHECK(put_in(h.l, "hidden", "two") == 0);
	snprintf(from, sizeof(from), "%s/a", h.u);
	snprintf(to, sizeof(to), "%s/d/b", h.u);
	CHECK(link(from, to) == 0);
	snprintf(from, sizeof(from), "%s/hidden", h.l);
	snprintf(to, sizeof(to), "%s/c", h.l);
	CHECK(link(from, to) == 0 && put_in(h.u, "hidden", "three") == 0);
	CHECK(merge(&h.layers, h.dest) == 0);
	CHECK(stat_in(h.dest, "a", &a) == 0 && stat_in(h.dest, "d/b", &b) == 0);
	CHECK(stat_in(h.dest, "c", &c) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2 && c.st_nlink == 1);
}

static void space_counts_each_file_once(void)
{
	struct hand h;
	uint64_t one, two, none = 7;
	char from[64], to[64];
	auto_close int fd = -1;

	hand_new(&h);
	CHECK(put_in(h.u, "a", "some bytes") == 0);
	fd = world_open(h.u);
	CHECK(fsync(fd) == 0 && layer_stack_sync(fd) == 0 && layer_stack_bytes(fd, &one) == 0 &&
	      one >= 512);
	snprintf(from, sizeof(from), "%s/a", h.u);
	snprintf(to, sizeof(to), "%s/b", h.u);
	CHECK(link(from, to) == 0 && layer_stack_bytes(fd, &two) == 0 && one == two);
	CHECK(layer_stack_bytes(-1, &none) < 0 && none == 7 && layer_stack_sync(-1) == -EBADF);
}

static void a_copy_inherits_nothing_from_its_directory(void)
{
	struct hand h;
	struct stat st;
	int fds[1];
	auto_close int to = -1;

	ROOT_ONLY();
	hand_new(&h);
	CHECK(put_in(h.u, "f", "f") == 0 && put_in(h.u, "d", NULL) == 0);
	CHECK(put_in(h.u, "d/g", "g") == 0);
	to = world_open(world_dir(h.dest));
	CHECK(fchmod(to, 02777) == 0 && fchown(to, 5, 5) == 0);
	CHECK(fsetxattr(to, "system.posix_acl_default", some_acl, sizeof(some_acl), 0) == 0);
	fds[0] = world_open(h.u);
	CHECK(layer_copy(fds, 1, to) == 0);
	close(fds[0]);
	CHECK(stat_in(h.dest, ".", &st) == 0 && (st.st_mode & 07777) == 0755 && st.st_gid == 0);
	CHECK(stat_in(h.dest, "d/g", &st) == 0 && st.st_gid == 0);
	CHECK(!has_mark(h.dest, "d", "system.posix_acl_default"));
	CHECK(!has_mark(h.dest, "d/g", "system.posix_acl_access"));
}

/* ---- archives -------------------------------------------------------------------------------- */

static int unpack(const char *to, struct err *err)
{
	struct tar_options o = { .oci = true, .owners = true };
	auto_close int in = open("t", O_RDONLY | O_CLOEXEC), dir = world_open(to);

	return tar_extract(in, dir, &o, err);
}

static void long_names_and_large_numbers_survive(void)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 5, 123456789 } };
	char name[600], back[16];
	struct err err = { 0 };
	struct hand h;
	struct stat st;

	ROOT_ONLY();
	hand_new(&h);
	/* byte 100 of the path of a file is a slash */
	memset(name, 'n', 99);
	name[99] = 0;
	CHECK(put_in(h.u, name, NULL) == 0);
	memcpy(name + 99, "/file", 6);
	CHECK(put_in(h.u, name, "text") == 0);
	{
		auto_close int dir = world_open(h.u);

		CHECK(fchownat(dir, name, 3000000000u, 4000000000u, 0) == 0);
		CHECK(utimensat(dir, name, times, 0) == 0);
	}
	CHECK(mark(h.u, name, "user.empty", "") == 0);
	CHECK(archive(&h.layers, "t") == 0 && unpack(world_dir(back), &err) == 0);
	CHECK(stat_in(back, name, &st) == 0 && st.st_size == 4);
	CHECK(st.st_uid == 3000000000u && st.st_gid == 4000000000u);
	CHECK(st.st_mtim.tv_sec == 5 && st.st_mtim.tv_nsec == 123456789);
	CHECK(has_mark(back, name, "user.empty"));
}

static void a_name_that_looks_like_a_whiteout_is_refused(void)
{
	struct hand h;
	char path[64];

	hand_new(&h);
	CHECK(put_in(h.u, ".wh.x", "x") == 0);
	CHECK(archive(&h.layers, "t") == -EILSEQ && merge(&h.layers, h.dest) == 0);
	snprintf(path, sizeof(path), "%s/.wh.x", h.u);
	CHECK(unlink(path) == 0 && archive(&h.layers, "t") == 0);
	CHECK(put_in(h.u, "f", "") == 0 && mark(h.u, "f", "user.a=b", "c") == 0);
	CHECK(archive(&h.layers, "t") == -EILSEQ);
}

static void a_socket_becomes_a_whiteout(void)
{
	char path[64];
	struct err err = { 0 };
	struct hand h;

	hand_new(&h);
	snprintf(path, sizeof(path), "%s/d", h.u);
	CHECK(mknod(path, S_IFSOCK | 0600, 0) == 0 && archive(&h.layers, "t") == 0);
	CHECK(unpack(h.t, &err) == 0 && !is_there(h.t, "d"));
}

/* The reader reads the header and closes; more than 8 GiB do not fit into a plain header. */
static void a_closed_reader_is_an_error(void)
{
	static char head[4096];
	struct hand h;
	char path[64];
	int p[2], r, fds[1];
	size_t have = 0;
	pid_t pid;

	hand_new(&h);
	CHECK(put_in(h.u, "big", "") == 0 && pipe2(p, O_CLOEXEC) == 0);
	snprintf(path, sizeof(path), "%s/big", h.u);
	CHECK(truncate(path, (off_t)9 << 30) == 0);
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		fds[0] = world_open(h.u);
		r = layer_tar(fds, 1, p[1]);
		_exit(-r & 0xff);
	}
	close(p[1]);
	while (have < sizeof(head)) {
		ssize_t n = read(p[0], head + have, sizeof(head) - have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(p[0]);
	waitpid(pid, &r, 0);
	CHECK(WIFEXITED(r) && WEXITSTATUS(r) == EPIPE);
	CHECK(memmem(head, sizeof(head), "size=9663676416\n", 16));
}

/* ---- random stacks --------------------------------------------------------------------------- */

static void random_stacks_look_the_same_when_merged(void)
{
	ROOT_ONLY();
	CHECK(random_stacks(1000, 200, stack_merges));
}

static void arbitrary_layers_look_the_same_when_merged(void)
{
	bool same;

	ROOT_ONLY();
	world.raw = true;
	same = random_stacks(7000, 100, stack_merges);
	world.raw = false;
	CHECK(same);
}

static void random_stacks_on_disk_look_the_same_when_merged(void)
{
	ROOT_ONLY();
	CHECK(random_stacks(3000, 8, stack_merges));
}

static void random_stacks_survive_an_archive(void)
{
	bool same;

	ROOT_ONLY();
	dice_archive = true;
	same = random_stacks(5000, 60, stack_survives_an_archive);
	dice_archive = false;
	CHECK(same);
}

/* ---- as an ordinary user --------------------------------------------------------------------- */

static int map_ids(void)
{
	static const struct {
		const char *file, *text;
	} maps[] = { { "/proc/self/setgroups", "deny" },
		     { "/proc/self/uid_map", "0 12345 1" },
		     { "/proc/self/gid_map", "0 12345 1" } };

	/* /proc/self belongs to root until exec after a change of user */
	if (setgid(12345) < 0 || setuid(12345) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		auto_close int fd = open(maps[i].file, O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, maps[i].text, strlen(maps[i].text)) < 0)
			return -1;
	}
	return 0;
}

static bool can_user_xattr(void)
{
	return put("probe", "") == 0 && setxattr("probe", "user.x", "", 0, 0) == 0;
}

static int as_user(void)
{
	char dest[16];
	struct dirs one = { 0 };

	/* created by a privileged process, like a template's files */
	if (mkdir("has-device", 0755) < 0 || mkdir("user", 0755) < 0 ||
	    mknod("has-device/null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		return 77;
	push(&one, "../has-device");
	if (map_ids() < 0 || mount("tmpfs", "user", "tmpfs", MS_NOATIME, "mode=755") < 0 ||
	    chdir("user") < 0 || mkdir("m", 0755) < 0 || !can_user_xattr())
		return 77;
	world.rootless = true;
	if (merge(&one, dest) != -EPERM)
		return 2;
	return random_stacks(9000, 40, stack_merges) ? 0 : 1;
}

static int run_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int r = fn();

		fflush(stdout);
		_exit(r);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void random_stacks_of_a_user_look_the_same(void)
{
	int r;

	ROOT_ONLY();
	r = run_child(as_user);
	if (r == 77)
		SKIP("no user namespaces, or no user.* on tmpfs");
	CHECK(r == 0);
}

/* ---- file systems ---------------------------------------------------------------------------- */

static void on_any_file_system(void)
{
	RUN(a_directory_over_a_whiteout_hides_the_template);
	RUN(a_directory_over_a_file_hides_the_template);
	RUN(a_directory_over_nothing_shows_the_template);
	RUN(nothing_below_an_opaque_directory_is_merged);
	RUN(a_whiteout_is_never_visible);
	RUN(the_top_of_a_layer_is_never_opaque);
	RUN(a_whiteout_may_be_an_attribute);
	RUN(attributes_of_the_old_stack_are_dropped_and_others_kept);
	RUN(an_attribute_set_by_the_guest_hides_nothing);
	RUN(a_layer_with_redirects_is_refused);
	RUN(the_number_of_layers_is_limited);
	RUN(holes_are_preserved);
	RUN(hard_links_are_within_one_layer);
	RUN(space_counts_each_file_once);
	RUN(a_copy_inherits_nothing_from_its_directory);
	RUN(a_long_directory_is_copied_completely);
	RUN(long_names_and_large_numbers_survive);
	RUN(a_name_that_looks_like_a_whiteout_is_refused);
	RUN(a_socket_becomes_a_whiteout);
	clean_world();
}

/* Reading a link updates its access time, unless the mount forbids it. */
static int mount_noatime(const char *dir, const char *type)
{
	if (!world.can_mount)
		return 0;
	if (type)
		return mount(type, dir, type, MS_NOATIME, NULL);
	return mount(dir, dir, NULL, MS_BIND, NULL) < 0
		       ? -1
		       : mount(NULL, dir, NULL, MS_BIND | MS_REMOUNT | MS_NOATIME, NULL);
}

static int enter(const char *dir)
{
	return chdir(dir) < 0 || (mkdir("m", 0755) < 0 && errno != EEXIST) ? -1 : 0;
}

static void leave(void)
{
	auto_close int parent = -1;

	parent = chdir("/") < 0 ? -1 : world_open(top);
	while (world.can_mount && umount2(disk, MNT_DETACH) == 0)
		;
	(void)file_remove_tree_at(parent, "disk");
	(void)rmdir(top);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(0);
	if (!mkdtemp(tmp_name(top, "lodge-stack")))
		return 99;
	snprintf(disk, sizeof(disk), "%s/disk", top);
	world.can_mount =
		unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	if (mkdir(disk, 0755) < 0 || chmod(top, 0755) < 0 || mount_noatime(disk, NULL) < 0 ||
	    enter(disk) < 0)
		return 99;
	on_any_file_system();
	RUN(random_stacks_on_disk_look_the_same_when_merged);
	clean_world();
	if (mount_noatime(disk, "tmpfs") < 0 || enter(disk) < 0)
		return 99;
	on_any_file_system();
	RUN(a_deep_tree_needs_few_descriptors);
	RUN(too_deep_a_tree_is_an_error);
	RUN(a_swapped_link_is_not_followed);
	RUN(a_closed_reader_is_an_error);
	clean_world();
	RUN(random_stacks_look_the_same_when_merged);
	RUN(arbitrary_layers_look_the_same_when_merged);
	RUN(random_stacks_survive_an_archive);
	RUN(random_stacks_of_a_user_look_the_same);
	leave();
	return tap_done();
}
