/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile guest may leave behind. */
#ifndef LODGE_TESTS_STACK_HOSTILE_H
#define LODGE_TESTS_STACK_HOSTILE_H

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/storage/layer_walk.h"
#include "layer_stack_history.h"

static int dig(const char *dir, unsigned depth, const char *file)
{
	int fd = world_open(dir);

	for (unsigned i = 0; i < depth && fd >= 0; i++) {
		int next = mkdirat(fd, "d", 0755) < 0
				   ? -1
				   : openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = next;
	}
	if (fd >= 0 && *file)
		close(openat(fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	return fd;
}

static unsigned depth_of(const char *dir, int *ret)
{
	int fd = world_open(dir);
	unsigned depth = 0;

	for (int next; (next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0; depth++) {
		close(fd);
		fd = next;
	}
	*ret = fd;
	return depth;
}

static void a_deep_tree_needs_few_descriptors(void)
{
	struct rlimit few = { 64, 64 }, before;
	auto_close int bottom = -1, copied = -1;
	struct stat a, b;
	struct hand h;
	int r;

	hand_new(&h);
	bottom = dig(h.u, 4096, "a");
	close(dig(h.l, 3000, "of-lower"));
	CHECK(bottom >= 0 && linkat(bottom, "a", bottom, "b", 0) == 0);
	getrlimit(RLIMIT_NOFILE, &before);
	few.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	r = merge(&h.layers, h.dest);
	if (r == 0)
		r = archive(&h.layers, "/dev/null");
	setrlimit(RLIMIT_NOFILE, &before);
	CHECK(r == 0);
	CHECK(depth_of(h.dest, &copied) == 4096);
	CHECK(fstatat(copied, "a", &a, 0) == 0 && fstatat(copied, "b", &b, 0) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2);
}

static void too_deep_a_tree_is_an_error(void)
{
	struct hand h;

	hand_new(&h);
	close(dig(h.u, LAYER_WALK_DEPTH_MAX + 1, ""));
	CHECK(merge(&h.layers, h.dest) == -ELOOP);
}

enum { LONG = 1500 }; /* needs several calls of getdents */

static void a_long_directory_is_copied_completely(void)
{
	struct hand h;
	char name[300], path[400];
	unsigned missing = 0;

	hand_new(&h);
	for (unsigned i = 0; i < LONG; i++) {
		const char *dir = i % 3 ? h.u : h.l;

		snprintf(name, sizeof(name), "%u-%0*d", i, (int)(i * 7 % 240), 0);
		CHECK(put_in(dir, name, i % 2 ? NULL : "x") == 0);
		snprintf(path, sizeof(path), "%s/in", name);
		CHECK(i % 2 == 0 || put_in(dir, path, "y") == 0);
	}
	CHECK(merge(&h.layers, h.dest) == 0);
	for (unsigned i = 0; i < LONG; i++) {
		snprintf(name, sizeof(name), "%u-%0*d%s", i, (int)(i * 7 % 240), 0,
			 i % 2 ? "/in" : "");
		missing += !is_there(h.dest, name);
	}
	CHECK(missing == 0);
}

/* Forks a process that swaps a directory with a link to a secret, as fast as it can. */
static pid_t start_swapping(const char *dir)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (chdir(dir) < 0)
		_exit(1);
	for (;;)
		syscall(SYS_renameat2, AT_FDCWD, "real", AT_FDCWD, "link", 2u /* EXCHANGE */);
}

static void a_swapped_link_is_not_followed(void)
{
	char secret[16], path[300];
	struct hand h;
	bool leaked = false;
	pid_t pid;

	hand_new(&h);
	world_dir(secret);
	CHECK(put_in(secret, "secret", "secret") == 0);
	CHECK(put_in(h.u, "real", NULL) == 0 && put_in(h.u, "real/file", "x") == 0);
	snprintf(path, sizeof(path), "%s/link", h.u);
	CHECK(symlink("../..", path) == 0);
	pid = start_swapping(h.u);
	for (unsigned i = 0; i < 300 && !leaked; i++) {
		auto_close int here = world_open(".");

		(void)merge(&h.layers, h.dest);
		snprintf(path, sizeof(path), "real/%s", secret);
		leaked = is_there(h.dest, path);
		snprintf(path, sizeof(path), "link/%s", secret);
		leaked = leaked || is_there(h.dest, path);
		(void)file_remove_tree_at(here, h.dest);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(!leaked);
}

#endif
