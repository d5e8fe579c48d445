/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in which lodge-init opens a path that a guest controls. */
#ifndef LODGE_INIT_CORE_GUEST_PATH_H
#define LODGE_INIT_CORE_GUEST_PATH_H

#include <sys/types.h>

/* openat2() that follows no magic link, never blocks, and never acquires a controlling terminal.
 * A descriptor or -errno. */
int guest_path_openat(int dir, const char *path, int flags, mode_t mode);

/* The same for a regular file or directory outside /proc, in blocking mode; for anything else
 * -EINVAL with *ret_kind set to its kind ("a FIFO"). */
int guest_path_open_file(int dir, const char *path, int flags, mode_t mode, const char **ret_kind);

const char *guest_path_kind(mode_t mode); /* "a FIFO", "a socket", ... */
extern const char guest_path_in_proc[];

#endif
