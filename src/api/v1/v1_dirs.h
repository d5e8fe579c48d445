/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_API_V1_V1_DIRS_H
#define LODGE_API_V1_V1_DIRS_H

#include "api/v1/v1_files.h"

/* Replies with the entries of a directory, as the query selects them. */
int v1_list(struct api_call *c, const struct v1_open_path *a, struct err *err);

#endif
