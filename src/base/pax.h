/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an archive: ustar headers, pax records for what does not fit into them. */
#ifndef LODGE_BASE_PAX_H
#define LODGE_BASE_PAX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	PAX_BLOCK = 512,
	PAX_EXTRA_MAX = 256 * 1024, /* of one entry; lodge reads no more */
};

struct pax {
	int fd;
	size_t n, extra_len;
	char buf[64 * 1024];
	char extra[PAX_EXTRA_MAX]; /* records of the next entry */
};

struct pax_entry {
	const char *path, *link; /* link: "" if there is none */
	char type; /* '0' file, '1' hard link, '2' symlink, '3' and '4' devices, '5' dir, '6' FIFO
		    */
	uint64_t size;
	const struct stat *st;
};

/* All return 0 or -errno. */
int pax_record(struct pax *p, const char *key, const void *value, size_t len);
int pax_entry(struct pax *p, const struct pax_entry *e);
int pax_bytes(struct pax *p, const void *bytes, size_t len);
int pax_zeros(struct pax *p, uint64_t len);
int pax_end(struct pax *p);

#endif
