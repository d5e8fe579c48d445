/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file call works: its side connection, its user, and the path inside the sandbox. */
#ifndef LODGE_LIB_LIB_AT_H
#define LODGE_LIB_LIB_AT_H

#include "lib/lib_engine.h"
#include "exec/side_conn.h"
#include "wire/agent_proto.h"

struct at {
	struct side_conn *loan;
	struct sandbox *sb;
	const char *user; /* NULL: the default user */
	char path[AGENT_PATH_MAX];
};

/* Returns NULL with the error in `last`. */
struct at *at_new(struct lodge *l, const struct lodge_ref *ref, const char *path);
void at_free(struct at *a); /* NULL is allowed */
DEFINE_AUTO(struct at *, at_free);

int at_check_path(const char *what, const char *path);
/* Resolves a path as a command would: relative paths start at the working directory or, without
 * one, at the user's home. */
int at_resolve(const struct at *a, const char *path, char ret[AGENT_PATH_MAX]);

#endif
