/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks an untrusted archive into a directory, and nowhere else. */
#ifndef LODGE_INIT_FILES_TAR_READ_H
#define LODGE_INIT_FILES_TAR_READ_H

#include "init/files/file_job_op.h"

struct tar_options {
	bool oci, owners, rootfs;
	uint64_t max_bytes, max_entries; /* 0: no limit */
};

/* Unpacks into an open directory. */
int tar_extract(int fd, int dir, const struct tar_options *o, struct err *err);

#endif
