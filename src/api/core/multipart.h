/* SPDX-License-Identifier: Apache-2.0 */
/* multipart/form-data (RFC 7578), piece by piece: forms with files of any size, in memory that does
 * not grow with them. Whoever sends it is not believed in anything: what is not well formed, too
 * long or too often is refused. */
#ifndef LODGE_API_CORE_MULTIPART_H
#define LODGE_API_CORE_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
	MULTIPART_BOUNDARY = 70,
	MULTIPART_HEAD = 4096, /* bytes of the headers of one part */
	MULTIPART_PARTS = 32,
	MULTIPART_AROUND = 64 << 10, /* bytes before the first part, and behind the last */
};

/* All ERR_INVALID or what a callback said; a callback's -1 ends it. */
struct multipart_ops {
	/* A part begins. filename NULL: it is no file. Both are texts without NUL, good until it
	 * returns; what they mean is the callee's to judge. */
	int (*begin)(void *arg, const char *name, const char *filename, struct err *err);
	int (*data)(void *arg, const char *bytes, size_t len, struct err *err);
	int (*end)(void *arg, struct err *err);
};

struct multipart {
	const struct multipart_ops *ops;
	void *arg;
	char delimiter[MULTIPART_BOUNDARY + 8]; /* CR LF - - boundary */
	size_t len, matched; /* of it */
	char head[MULTIPART_HEAD];
	size_t used;
	unsigned parts;
	size_t around;
	int state;
	bool failed;
};

/* From the Content-Type of a request (NULL: it had none): ERR_INVALID with sys EMEDIUMTYPE if it is
 * another type. */
int multipart_init(struct multipart *m, const char *type, const struct multipart_ops *ops,
		   void *arg, struct err *err);
int multipart_feed(struct multipart *m, const char *bytes, size_t len, struct err *err);
/* The body ended: -1 unless the form did too. */
int multipart_finish(const struct multipart *m, struct err *err);

#endif
