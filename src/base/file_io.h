/* SPDX-License-Identifier: Apache-2.0 */
/* Small whole-file reads and writes, relative to a directory fd. Leaf calls: >= 0 or -errno. */
#ifndef LODGE_BASE_FILE_IO_H
#define LODGE_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One write(2): a kernel file sees the value whole. */
int file_printf_at(int dir, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads at most size - 1 bytes and ends them with NUL. Returns the length. */
ssize_t file_read_at(int dir, const char *name, char *buf, size_t size);
ssize_t file_read_fd(int fd, char *buf, size_t size);

/* The number after `key` at the start of a line ("oom_kill 3"), or of the file when key is "". */
int file_number_at(int dir, const char *name, const char *key, uint64_t *ret);
int file_number_in(const char *text, const char *key, uint64_t *ret);

/* A new file of this content, in place at once: temporary name, rename. */
int file_replace_at(int dir, const char *name, const char *text, size_t len);

/* All of it, also into a pipe that the other side made non-blocking for both. */
int file_write_all(int fd, const void *bytes, size_t len);

/* So that the names in this directory outlive a power loss. */
int file_sync_dir(const char *path);

/* Removes name and everything below it, never following a link, never leaving the file system. */
int file_remove_tree_at(int dir, const char *name);

/* Calls fn for each entry of dir/name but "." and "..", until fn returns non-zero. */
typedef int file_each_fn(int dir, const char *name, void *arg);
int file_each_at(int dir, const char *name, file_each_fn *fn, void *arg);

#endif
