/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of lodge cp. */
#ifndef LODGE_CLI_COPY_CP_H
#define LODGE_CLI_COPY_CP_H

#include "cli/core/api_cmd.h"

/* A path in a session, or on this machine. */
struct cp_target {
	const char *given;
	bool remote, stream; /* stream: standard input or output */
	char ref[TARGET_REF]; /* the session */
	const char *path; /* within it, or here */
};

/* Copies one operand; `many`: the target must be a directory. Adds to *bytes. */
int cp_upload(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
	      bool many, uint64_t *bytes, struct err *err);
int cp_download(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
		bool many, uint64_t *bytes, struct err *err);

/* Writes an answer to a descriptor, with progress. */
int cp_drain(struct client_stream *s, int fd, const char *what, bool quiet, uint64_t *bytes,
	     struct err *err);

#endif
