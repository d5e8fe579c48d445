/* SPDX-License-Identifier: Apache-2.0 */
/* An incremental parser of multipart/form-data (RFC 7578) with constant memory. Malformed or
 * oversized input is rejected. */
#ifndef LODGE_API_CORE_MULTIPART_H
#define LODGE_API_CORE_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
	MULTIPART_BOUNDARY = 70,
	MULTIPART_HEAD = 4096, /* bytes of the headers of one part */
	MULTIPART_PARTS = 32,
	MULTIPART_AROUND = 64 << 10, /* bytes before the first part and after the last */
};

/* Return -1 to stop the parser with the given error. */
struct multipart_ops {
	/* A part starts. filename NULL: not a file. Strings are valid during the call and not
	 * validated. */
	int (*begin)(void *arg, const char *name, const char *filename, struct err *err);
	int (*data)(void *arg, const char *bytes, size_t len, struct err *err);
	int (*end)(void *arg, struct err *err); /* may be NULL */
};

struct multipart {
	const struct multipart_ops *ops;
	void *arg;
	char delimiter[MULTIPART_BOUNDARY + 8]; /* CR LF - - boundary */
	size_t len, matched; /* its length */
	char head[MULTIPART_HEAD];
	size_t used;
	unsigned parts;
	size_t around;
	int state;
	bool failed;
};

/* Initializes from a Content-Type (NULL: none). ERR_INVALID with sys EMEDIUMTYPE: another type. */
int multipart_init(struct multipart *m, const char *type, const struct multipart_ops *ops,
		   void *arg, struct err *err);
int multipart_feed(struct multipart *m, const char *bytes, size_t len, struct err *err);
/* Call it at the end of the body: -1 if the form is incomplete. */
int multipart_finish(const struct multipart *m, struct err *err);

#endif
