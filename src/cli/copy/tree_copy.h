/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLI_COPY_TREE_COPY_H
#define LODGE_CLI_COPY_TREE_COPY_H

#include "base/err.h"

/* Moves the contents of the directory `from`, which only this user can access, into the directory
 * `to` of the same file system. Merges directories, replaces files and links, and never follows a
 * link. Clears set-id bits, and skips everything but files, directories and links. */
int tree_copy(int from, int to, struct err *err);
/* Removes dir/name recursively, also from directories without write permission. */
void tree_copy_drop(int dir, const char *name);

#endif
