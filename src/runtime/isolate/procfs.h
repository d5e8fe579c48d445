/* SPDX-License-Identifier: Apache-2.0 */
/* /proc of a sandbox: its own pid namespace, processes of other users hidden, kernel settings
 * read-only, and files that describe or affect the host masked. */
#ifndef LODGE_RUNTIME_ISOLATE_PROCFS_H
#define LODGE_RUNTIME_ISOLATE_PROCFS_H

#include "base/err.h"

/* As PID 1 of the new pid namespace: mounts it at "proc" below the working directory.
 * `null`: path of the null device; `empty`: of an empty directory. */
int procfs_attach(const char *null, const char *empty, struct err *err);

#endif
