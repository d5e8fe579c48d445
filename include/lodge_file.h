/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: files of a session. Included by lodge.h. */
#ifndef LODGE_FILE_H
#define LODGE_FILE_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Paths are inside the sandbox, accessed with the permissions of the session's user; relative paths
 * start at the working directory of commands. mode 0: 0644, for directories 0755. */

struct lodge_bytes {
	char *data; /* NUL-terminated; any bytes */
	size_t len;
};
/* LODGE_LIMIT if the file has more than max bytes. */
int lodge_file_read(struct lodge *l, const struct lodge_ref *ref, const char *path, size_t max,
		    struct lodge_bytes **ret);
/* Replaces the file atomically and creates missing directories. */
int lodge_file_write(struct lodge *l, const struct lodge_ref *ref, const char *path,
		     const void *data, size_t len, mode_t mode);
int lodge_file_append(struct lodge *l, const struct lodge_ref *ref, const char *path,
		      const void *data, size_t len, mode_t mode);

/* The calls above hold the whole content in memory. These handle files of any size in pieces. A
 * session is neither hibernated nor destroyed by its timeouts while a handle is open. */
struct lodge_reader;
int lodge_reader_open(struct lodge *l, const struct lodge_ref *ref, const char *path,
		      struct lodge_reader **ret);
/* Reads up to `size` bytes from `offset` on. *ret 0: the end of the file. */
int lodge_reader_read(struct lodge_reader *r, uint64_t offset, void *buf, size_t size, size_t *ret);
void lodge_reader_close(struct lodge_reader *r); /* accepts NULL */

struct lodge_writer;
/* Creates missing directories. The file itself appears, or is replaced, with lodge_writer_commit().
 */
int lodge_writer_open(struct lodge *l, const struct lodge_ref *ref, const char *path, mode_t mode,
		      struct lodge_writer **ret);
/* Appends to what was written so far. After a failure only lodge_writer_close() is left. */
int lodge_writer_write(struct lodge_writer *w, const void *data, size_t len);
int lodge_writer_commit(struct lodge_writer *w);
/* Without a commit, discards what was written. Accepts NULL. */
void lodge_writer_close(struct lodge_writer *w);

struct lodge_file {
	const char *path; /* in a list: relative to the directory; any bytes but NUL */
	const char *target; /* of a symbolic link */
	uint32_t mode; /* st_mode: type and permissions */
	uint32_t nlink, uid, gid;
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
};
/* follow 0: describes a symbolic link itself. */
int lodge_file_stat(struct lodge *l, const struct lodge_ref *ref, const char *path, int follow,
		    struct lodge_file **ret);

struct lodge_files {
	struct lodge_file **items;
	size_t count;
	uint64_t total, total_bytes; /* from lodge_thread_files(): includes omitted files */
};
/* Lists files sorted by name, depth first; depth 1: only the directory itself. LODGE_LIMIT if there
 * are more than max. */
int lodge_file_list(struct lodge *l, const struct lodge_ref *ref, const char *path, uint32_t depth,
		    size_t max, struct lodge_files **ret);

/* parents not 0: creates missing parents, and succeeds if the directory exists. */
int lodge_file_mkdir(struct lodge *l, const struct lodge_ref *ref, const char *path, int parents,
		     mode_t mode);
/* replace 0: LODGE_CONFLICT if `to` exists. */
int lodge_file_rename(struct lodge *l, const struct lodge_ref *ref, const char *from,
		      const char *to, int replace);
/* Removes a file or an empty directory. */
int lodge_file_remove(struct lodge *l, const struct lodge_ref *ref, const char *path);
/* Removes anything recursively; succeeds if it does not exist. */
int lodge_file_remove_tree(struct lodge *l, const struct lodge_ref *ref, const char *path);
int lodge_file_symlink(struct lodge *l, const struct lodge_ref *ref, const char *target,
		       const char *path);
int lodge_file_chmod(struct lodge *l, const struct lodge_ref *ref, const char *path, mode_t mode);

/* Writes the content of a directory to `fd` as a tar archive; unpacks one from `fd` into a
 * directory. */
int lodge_file_tar_out(struct lodge *l, const struct lodge_ref *ref, const char *path, int fd);
int lodge_file_tar_in(struct lodge *l, const struct lodge_ref *ref, const char *path, int fd);

#ifdef __cplusplus
}
#endif
#endif
