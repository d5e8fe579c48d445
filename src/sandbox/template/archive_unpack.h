/* SPDX-License-Identifier: Apache-2.0 */
/* Archives on their way into a sandbox. This process only carries bytes: unpacking happens in the
 * sandbox that is being filled, decompression in another one. */
#ifndef LODGE_SANDBOX_TEMPLATE_ARCHIVE_UNPACK_H
#define LODGE_SANDBOX_TEMPLATE_ARCHIVE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

struct archive_unpack {
	struct sandbox *into; /* what is being filled */
	/* Has gzip, xz, zstd, bzip2; borrowed. NULL: `need_host` makes it when the first archive
	 * comes that is packed. */
	struct sandbox *host;
	int (*need_host)(void *arg, struct sandbox **ret, struct err *err);
	void (*progress)(void *arg, const struct archive_unpack *u); /* now and then; may be NULL */
	void *arg;
	uint64_t total, done; /* bytes of all archives as they come; total 0: not known */
	uint64_t bytes; /* of them that went in, without their packing */
	uint64_t max_bytes, max_entries; /* more is ERR_LIMIT, EMSGSIZE; 0: the disk decides */
	int64_t until_ms; /* of CLOCK_MONOTONIC: then it is ERR_TIMEOUT; 0: as long as it takes */
};

/* Reads a tar, packed or not, from `fd` to its end into the directory `path`. job_flags: enum
 * agent_job_flag. */
int archive_unpack_tar(struct archive_unpack *u, int fd, const char *path, unsigned job_flags,
		       struct err *err);

#endif
