/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of lodge cp. */
#ifndef LODGE_CLI_COPY_CP_H
#define LODGE_CLI_COPY_CP_H

#include "cli/core/api_cmd.h"

/* One side: of a session, or of this machine. */
struct cp_parse_target {
	const char *given;
	bool remote, stream; /* stream: standard input or output */
	char ref[WHERE_REF]; /* the session */
	const char *path; /* within it, or here */
};

/* The last part of a path; "" for one that ends in "/", "." or "..", whose content is meant. */
void cp_base(const char *path, char *ret, size_t size);

/* What is at a path of a session, links followed; *ret NULL: nothing. */
int cp_stat(struct api_cmd *a, const struct cp_parse_target *p, const char *path, json_t **ret,
	    struct err *err);

/* One operand to its place; `many`: the target must be a directory. *bytes counts. */
int cp_upload(struct api_cmd *a, const struct cp_parse_target *from,
	      const struct cp_parse_target *to, bool many, uint64_t *bytes, struct err *err);
int cp_download(struct api_cmd *a, const struct cp_parse_target *from,
		const struct cp_parse_target *to, bool many, uint64_t *bytes, struct err *err);

/* An answer's bytes to a descriptor, with progress; EPIPE ends it without an error if `pipe`. */
int cp_drain(struct client_stream *s, int fd, const char *what, bool quiet, uint64_t *bytes,
	     struct err *err);

#endif
