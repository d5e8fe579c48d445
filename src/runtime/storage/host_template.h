/* SPDX-License-Identifier: Apache-2.0 */
/* The `host` template: a small tree of directories, links and chosen files of /etc, beside which
 * the host's own /usr is mounted read-only. Made once and never changed, because living overlays
 * stand on it; a host that changed gets a new one under a new name. */
#ifndef LODGE_RUNTIME_STORAGE_HOST_TEMPLATE_H
#define LODGE_RUNTIME_STORAGE_HOST_TEMPLATE_H

#include <stdbool.h>

#include "base/err.h"

/* A descriptor of the tree below `home`. */
int host_template_open(int home, bool rootless, struct err *err);

/* The host's directories to mount read-only at the same place: "/usr", and "/bin" and others where
 * they are no links into it. NULL-terminated. */
const char *const *host_template_binds(void);

#endif
