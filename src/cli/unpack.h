/* SPDX-License-Identifier: Apache-2.0 */
/* Archives on their way into a sandbox. This process only carries bytes: unpacking happens in the
 * sandbox that is being filled, decompression in another one. */
#ifndef LODGE_CLI_UNPACK_H
#define LODGE_CLI_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

enum unpack_packing { UNPACK_PLAIN, UNPACK_GZIP, UNPACK_XZ, UNPACK_ZSTD, UNPACK_BZIP2 };

struct unpack {
	struct sandbox *into; /* root class, being filled */
	struct sandbox *host; /* has gzip, xz, zstd; may be NULL while only plain tars come */
	bool progress; /* on stderr */
	uint64_t total, done; /* bytes of all archives; 0: not known */
};

/* By the first bytes; the file offset stays where it was. */
enum unpack_packing unpack_detect(int fd);

/* Reads a tar from `fd` to its end into "/" of u->into. job_flags: enum agent_job_flag. */
int unpack_tar(struct unpack *u, int fd, enum unpack_packing packing, unsigned job_flags,
	       struct err *err);
/* Removes the progress line. */
void unpack_done(struct unpack *u);

#endif
