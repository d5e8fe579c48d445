/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pipes, sockets and devices of a directory, which cannot be copied into a session. */
#ifndef LODGE_CLI_COPY_TAR_EXTRACT_H
#define LODGE_CLI_COPY_TAR_EXTRACT_H

#include "base/err.h"

/* Reports each on standard error and returns options of tar(1) that exclude them from an archive of
 * "."; NULL ends the options, and tar_extract_filter_free() frees them. tar reports what cannot be
 * read. */
int tar_extract_filter(const char *dir, char ***ret, struct err *err);
void tar_extract_filter_free(char **options);

#endif
