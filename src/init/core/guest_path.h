/* SPDX-License-Identifier: Apache-2.0 */
/* The one way lodge-init opens a name that a guest controls. */
#ifndef LODGE_INIT_CORE_GUEST_PATH_H
#define LODGE_INIT_CORE_GUEST_PATH_H

#include <sys/types.h>

/* openat2() that follows no magic link, never blocks, never becomes a controlling terminal.
 * A descriptor or -errno. */
int guest_path_openat(int dir, const char *path, int flags, mode_t mode);

/* The same, and what was opened is a regular file or a directory outside /proc, in blocking mode;
 * otherwise -EINVAL with *ret_kind set to what it is ("a FIFO"). */
int guest_path_open_file(int dir, const char *path, int flags, mode_t mode, const char **ret_kind);

const char *guest_path_kind(mode_t mode); /* "a FIFO", "a socket", ... */
extern const char path_in_proc[];

#endif
