/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a temporary directory, for the tests of the store. */
#ifndef LODGE_TESTS_STORE_DIR_H
#define LODGE_TESTS_STORE_DIR_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file_io.h"
#include "store/sqlite_open.h"
#include "tap.h"
#include "tmp_name.h"

static char dir[TMP_NAME_SIZE], path[160];

static inline bool make_dir(void)
{
	if (!mkdtemp(tmp_name(dir, "lodge-store")))
		return false;
	snprintf(path, sizeof(path), "%s/lodge.db", dir);
	return true;
}

static inline void remove_dir(void)
{
	file_remove_tree_at(AT_FDCWD, dir);
}

static inline struct store *reopen(struct err *err)
{
	struct store *st = NULL;

	store_open_sqlite(path, "/run/lodge.sock", &st, err);
	return st;
}

static inline void forget(void)
{
	remove_dir();
	mkdir(dir, 0755);
}

/* Runs fn in a child; true if its exit status is 0. */
static inline bool in_child(void (*fn)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		tap_ok = true;
		fn();
		fflush(stdout);
		_exit(!tap_ok);
	}
	waitpid(pid, &status, 0);
	return status == 0;
}

static inline int64_t pragma(struct store *st, const char *text)
{
	struct err err;
	int64_t n = -1;

	return db_number(st, text, NULL, 0, &n, &err) < 0 ? -1 : n;
}

#endif
