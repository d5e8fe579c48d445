/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one file or directory for lodge cp. */
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

struct cp {
	struct api_cmd *a;
	struct cp_target from, to; /* one of them is remote */
	bool many; /* several are copied: the target must be a directory */
	uint64_t bytes; /* that were copied */

	/* private */
	char path[API_PATH]; /* to write to */
	bool below; /* the guest chose the last part of a path here: do not follow a link there */
	json_t *entry; /* the record of the path in the session; NULL: none */
};

int cp_copy(struct cp *c, struct err *err);

/* Writes an answer to a descriptor, with progress. Returns its length. */
int64_t cp_drain(struct client_stream *s, int fd, const char *what, bool quiet, struct err *err);

#endif
