/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LIB_LIB_FILES_H
#define LODGE_LIB_LIB_FILES_H

#include "lib/lib_engine.h"

/* Both return NULL without memory. The list is empty, with space for n files. */
struct lodge_file *lib_put_file(const char *path, const struct agent_stat *st, const char *target);
struct lodge_files *lib_put_files(size_t n);

#endif
