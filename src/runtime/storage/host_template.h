/* SPDX-License-Identifier: Apache-2.0 */
/* The `host` template: a small tree of directories, links and selected files of /etc; the host's
 * own /usr is mounted read-only beside it. The tree never changes, because running overlays use it:
 * after a change of the host, a new one is made under a new name. */
#ifndef LODGE_RUNTIME_STORAGE_HOST_TEMPLATE_H
#define LODGE_RUNTIME_STORAGE_HOST_TEMPLATE_H

#include <stdbool.h>

#include "base/err.h"

/* A descriptor of the tree below `home`; makes it if it does not exist. */
int host_template_open(int home, bool rootless, struct err *err);

/* Directories of the host to mount read-only at the same path: "/usr", and "/bin" and others unless
 * they are links into it. NULL-terminated. */
const char *const *host_template_binds(void);

#endif
