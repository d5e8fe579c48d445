/* SPDX-License-Identifier: Apache-2.0 */
/* What of a directory does not go into an archive for a session: pipes, sockets and devices. */
#ifndef LODGE_CLI_COPY_TAR_EXTRACT_H
#define LODGE_CLI_COPY_TAR_EXTRACT_H

#include "base/err.h"

/* Says each on standard error, and returns options of tar(1) that leave them out of an archive of
 * "." there; NULL ends them, tar_extract_filter_free() frees them. What cannot be looked at is left
 * to tar, which complains. */
int tar_extract_filter(const char *dir, char ***ret, struct err *err);
void tar_extract_filter_free(char **options);

#endif
