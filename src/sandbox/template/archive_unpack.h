/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks archives into a sandbox. This process only moves bytes: the target sandbox unpacks,
 * another sandbox decompresses. */
#ifndef LODGE_SANDBOX_TEMPLATE_ARCHIVE_UNPACK_H
#define LODGE_SANDBOX_TEMPLATE_ARCHIVE_UNPACK_H

#include "base/sha256.h"
#include "sandbox/sandbox.h"

/* Digests of one archive, computed while it is read. */
struct archive_hash {
	struct sha256 stored, content; /* as it is stored, and uncompressed */
};

struct archive_unpack {
	struct sandbox *into; /* target */
	/* Sandbox with gzip, xz, zstd and bzip2; borrowed. NULL: `need_host` creates it for the
	 * first compressed archive. */
	struct sandbox *host;
	int (*need_host)(void *arg, struct sandbox **ret, struct err *err);
	/* Called periodically; may be NULL. */
	void (*progress)(void *arg, const struct archive_unpack *u);
	void *arg;
	uint64_t total, done; /* compressed bytes of all archives; total 0: unknown */
	uint64_t bytes; /* uncompressed bytes passed on */
	uint64_t max_bytes, max_entries; /* more is ERR_LIMIT, EMSGSIZE; 0: the disk limits it */
	struct archive_hash *hash; /* of the next archive; NULL: none is needed */
	int64_t until_ms; /* deadline on CLOCK_MONOTONIC, then ERR_TIMEOUT; 0: none */
};

/* Reads a tar, compressed or not, from `fd` to its end into the directory `path`. job_flags: enum
 * agent_job_flag. */
int archive_unpack_tar(struct archive_unpack *u, int fd, const char *path, unsigned job_flags,
		       struct err *err);
/* Reads and hashes an archive, but unpacks nothing. */
int archive_unpack_verify(struct archive_unpack *u, int fd, struct err *err);

#endif
