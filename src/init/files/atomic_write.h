/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic writes: a hidden temporary file beside the target that replaces it at commit. */
#ifndef LODGE_INIT_FILES_ATOMIC_WRITE_H
#define LODGE_INIT_FILES_ATOMIC_WRITE_H

#include "init/files/guest_file.h"

/* While impersonating the user. 0 and `ret` filled, or -errno with *ret_kind as
 * guest_path_open_file(). */
int atomic_write_open(uint8_t conn, const struct cred *cred, int base, const char *path,
		      const struct agent_file *m, const char **ret_kind,
		      struct guest_file_reply *ret);
/* Replaces the target, or aborts. */
int atomic_write_end(uint8_t conn, uint64_t token, bool commit, struct err *err);
/* Aborts the unfinished writes of a closed connection. */
void atomic_write_forget_conn(uint8_t conn);

#endif
