/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tar archives: ustar with pax records, and the long names of GNU tar. */
#ifndef LODGE_INIT_FILES_TAR_HEAD_H
#define LODGE_INIT_FILES_TAR_HEAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pax.h"
#include "init/core/init_state.h"

enum { TAR_AFTER_MAX = 64 << 20 }; /* padding after the end marker */

struct tar_entry {
	char type; /* '0' file, '1' hard link, '2' symlink, '5' directory, others unchanged */
	uint32_t mode, uid, gid;
	uint64_t size;
	struct timespec mtime;
	char path[AGENT_PATH_MAX], link[AGENT_PATH_MAX];
	size_t extra_len; /* pax records, for the extended attributes in them */
};

/* An archive that is being read. */
struct tar_source {
	int fd;
	uint64_t left; /* unread content of the current entry, without padding */
	uint32_t pad;
	char *extra; /* PAX_EXTRA_MAX + 1 bytes, owned by the caller */
};

/* 1 and the next entry, 0 at the end marker, -1. Skips unread content of the last entry. */
int tar_next(struct tar_source *s, struct tar_entry *e, struct err *err);
/* Reads content of the entry: bytes, 0 at its end, -1. */
ssize_t tar_head_read(struct tar_source *s, void *buf, size_t size, struct err *err);

/* The next record of `extra` from *at on; false at the end. Values may hold any byte. */
struct tar_record {
	const char *key, *value;
	size_t key_len, value_len;
};
bool tar_record_next(const char *extra, size_t len, size_t *at, struct tar_record *ret);

#endif
