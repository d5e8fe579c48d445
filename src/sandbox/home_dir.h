/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory with templates and sandboxes. */
#ifndef LODGE_SANDBOX_HOME_DIR_H
#define LODGE_SANDBOX_HOME_DIR_H

#include "base/err.h"

enum { HOME_DIR_SIZE = 4096 };

/* LODGE_DATA, or its older name LODGE_HOME; NULL: neither is set. */
const char *home_dir_variable(void);
/* `given` (--data) else home_dir_variable(), else /var/lib/lodge for root, else
 * $XDG_DATA_HOME/lodge or ~/.local/share/lodge. Always absolute; creates a missing directory. */
int home_dir_find(const char *given, char ret[HOME_DIR_SIZE], struct err *err);
/* The keeper's part of it: the subdirectory `keeper` if it exists, as for an unprivileged service
 * that owns the rest; else all of it. */
void home_dir_keeper(const char *home, char ret[HOME_DIR_SIZE]);

#endif
