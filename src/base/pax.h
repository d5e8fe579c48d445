/* SPDX-License-Identifier: Apache-2.0 */
/* Writes archives: ustar headers, and pax records for values that do not fit into them. */
#ifndef LODGE_BASE_PAX_H
#define LODGE_BASE_PAX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buffered_writer.h"

enum {
	PAX_BLOCK = 512,
	PAX_EXTRA_MAX = 256 * 1024, /* bytes of records per entry */
};

#define PAX_XATTR "SCHILY.xattr." /* key of an extended attribute's record, before its name */

struct pax_header { /* one block of the archive */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
	char link[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	char prefix[155], pad[12];
};

struct pax {
	struct buffered_writer out;
	uint64_t total; /* bytes put so far */
	size_t extra_len;
	char extra[PAX_EXTRA_MAX]; /* records of the next entry */
};

struct pax_entry {
	const char *path, *link; /* link: "" for none */
	char type; /* '0' file, '1' hard link, '2' link, '3' and '4' devices, '5' dir, '6' FIFO */
	uint64_t size;
	const struct stat *st;
};

/* All return 0 or -errno. */

/* Adds a record to the next entry; -E2BIG beyond PAX_EXTRA_MAX. */
int pax_record(struct pax *p, const char *key, const void *value, size_t len);
/* The headers of an entry. The caller puts `size` bytes and pax_pad() after it. */
int pax_entry(struct pax *p, const struct pax_entry *e);
int pax_bytes(struct pax *p, const void *bytes, size_t len);
int pax_zeros(struct pax *p, uint64_t len);
/* Fills the last block of an entry of this size. */
int pax_pad(struct pax *p, uint64_t size);
/* The end mark; writes what is buffered. */
int pax_end(struct pax *p);

#endif
