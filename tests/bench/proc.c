/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"

DEFINE_AUTO(FILE *, fclose);
DEFINE_AUTO(DIR *, closedir);

/* The number after `key` at the start of a line. */
static bool find_number(const char *path, const char *key, uint64_t *ret)
{
	auto_call(fclose) FILE *f = fopen(path, "re");
	size_t n = strlen(key);
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, n) == 0) {
			*ret = strtoull(line + n, NULL, 10);
			return true;
		}
	return false;
}

uint64_t proc_meminfo(const char *key)
{
	uint64_t v = 0;

	find_number("/proc/meminfo", key, &v);
	return v;
}

uint64_t proc_kb(pid_t pid, const char *file, const char *key)
{
	uint64_t v = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	find_number(path, key, &v);
	return v;
}

static int count_entries(const char *path)
{
	auto_call(closedir) DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	return n;
}

int proc_count_fds(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return count_entries(path);
}

static int count_lines(const char *path, const char *part)
{
	auto_call(fclose) FILE *f = fopen(path, "re");
	char line[8192];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, part) != NULL;
	return n;
}

int proc_count_mounts(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	return count_lines(path, "\n");
}

static bool read_comm(const char *pid, char comm[64])
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	comm[0] = '\0';
	if (fgets(comm, 64, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
	return true;
}

/* Name, state and parent of a process. */
static bool read_stat(const char *pid, char *ret_state, pid_t *ret_parent)
{
	char path[300], line[512];
	const char *end;
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	end = ok ? strrchr(line, ')') : NULL;
	return end && sscanf(end + 1, " %c %d", ret_state, ret_parent) == 2;
}

pid_t proc_child(pid_t parent, const char *comm)
{
	auto_call(closedir) DIR *d = opendir("/proc");
	struct dirent *e;
	char name[64], state;
	pid_t of;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_stat(e->d_name, &state, &of))
			continue;
		if (of != parent || state == 'Z')
			continue;
		if (!comm || (read_comm(e->d_name, name) && strcmp(name, comm) == 0))
			return (pid_t)atoi(e->d_name);
	}
	return 0;
}

int proc_count_children(pid_t parent)
{
	auto_call(closedir) DIR *d = opendir("/proc");
	struct dirent *e;
	char state;
	pid_t of;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		     read_stat(e->d_name, &state, &of) && of == parent && state != 'Z';
	return n;
}

long proc_slab(const char *name)
{
	char key[64];
	uint64_t v;

	snprintf(key, sizeof(key), "%s ", name);
	return find_number("/proc/slabinfo", key, &v) ? (long)v : -1;
}

/* ---- trees ---------------------------------------------------------------------------------- */

static long found; /* nftw() passes no argument */
static bool only_dirs;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path, (void)st;
	found += at->level > 0 && (type == FTW_D || !only_dirs);
	return 0;
}

static long count_tree(const char *path, bool dirs)
{
	found = 0;
	only_dirs = dirs;
	(void)nftw(path, count_one, 16, FTW_PHYS | FTW_MOUNT);
	return found;
}

long proc_count_files(const char *path)
{
	return count_tree(path, false);
}

long proc_count_dirs(const char *path)
{
	return count_tree(path, true);
}

int proc_count_loops(const char *part)
{
	auto_call(closedir) DIR *d = opendir("/sys/block");
	struct dirent *e;
	char path[300];
	int n = 0;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "loop", 4) != 0)
			continue;
		snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
		n += count_lines(path, part) > 0;
	}
	return n;
}

/* ---- one process ---------------------------------------------------------------------------- */

uint64_t proc_memfd_bytes(pid_t pid)
{
	char path[64];
	auto_call(closedir) DIR *d = NULL;
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;
	char to[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = '\0';
		if (strncmp(to, "/memfd:", 7) == 0 && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
			sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

bool proc_run_dir(const char *home, char *ret, size_t size)
{
	struct stat st;

	if (geteuid() != 0) {
		snprintf(ret, size, "%s/run", home);
		return true;
	}
	if (stat(home, &st) < 0)
		return false;
	snprintf(ret, size, "/run/lodge/%llx.%llx", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return access(ret, F_OK) == 0;
}

void proc_each_sandbox(const char *home, proc_name_fn *fn, void *arg)
{
	auto_call(closedir) DIR *d = NULL;
	char run[96], path[128];
	struct dirent *e;

	if (!proc_run_dir(home, run, sizeof(run)))
		return;
	snprintf(path, sizeof(path), "%s/d/sandboxes", run);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			fn(arg, e->d_name);
}
