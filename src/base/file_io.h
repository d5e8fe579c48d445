/* SPDX-License-Identifier: Apache-2.0 */
/* Small whole-file reads and writes, relative to a directory fd. Leaf calls: >= 0 or -errno. */
#ifndef LODGE_BASE_FILE_IO_H
#define LODGE_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Uses one write(2), because kernel files need the whole value at once. */
int file_printf_at(int dir, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads at most size - 1 bytes and appends a NUL. Returns the length. */
ssize_t file_read_at(int dir, const char *name, char *buf, size_t size);
ssize_t file_read_fd(int fd, char *buf, size_t size);

/* The number after `key` at the start of a line ("oom_kill 3"), or of the file when key is "". */
int file_number_at(int dir, const char *name, const char *key, uint64_t *ret);
int file_number_in(const char *text, const char *key, uint64_t *ret);

/* Replaces a file atomically: writes a temporary file and renames it. */
int file_replace_at(int dir, const char *name, const char *text, size_t len);

/* Writes all bytes, waiting where the descriptor is non-blocking (a peer can make a shared pipe
 * so). */
int file_write_all(int fd, const void *bytes, size_t len);

/* Syncs a directory, so that its names survive a power loss. */
int file_sync_dir(const char *path);

/* Removes name and everything below it, never following a link, never leaving the file system. */
int file_remove_tree_at(int dir, const char *name);

/* Calls fn for each entry of dir/name but "." and "..", until fn returns non-zero. */
typedef int file_each_fn(int dir, const char *name, void *arg);
int file_each_at(int dir, const char *name, file_each_fn *fn, void *arg);
/* The same for `dir` itself, from its beginning. */
int file_each_in(int dir, file_each_fn *fn, void *arg);

#endif
