/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes about files have in common.
 *
 * A path is relative to the session's working directory, as it is for a command, unless it begins
 * with a slash once decoded: "files/a/b" is a/b there, "files//etc/hosts" and "files/%2Fetc/hosts"
 * are both /etc/hosts (some proxies merge two slashes into one, so callers better encode). "" is
 * the working directory itself. Nothing here looks at the path: ".." and links are resolved by
 * lodge-init alone, inside, with the rights of the session's user. */
#ifndef LODGE_API_V1_V1_FILES_H
#define LODGE_API_V1_V1_FILES_H

#include <sys/stat.h>

#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "sandbox/files_client.h"

struct v1_open_path {
	struct side_conn *loan;
	struct sandbox *sb;
	const struct template *spec; /* the session's */
	const char *user; /* NULL: the default one */
	const char *given; /* the path as it was asked for */
	char path[AGENT_PATH_MAX]; /* as the sandbox is told */
};

/* The session of the first parameter, and a path in it, until the call ends. It is resumed unless
 * the query says resume=0, and the answer's head tells. */
int v1_open_path(struct api_call *c, const char *given, struct v1_open_path *ret, struct err *err);
/* The same of the session of this id. */
int v1_open_session_path(struct api_call *c, const char *id, const char *given, bool resume,
			 struct v1_open_path *ret, struct err *err);
/* How callers name what is `path` below `dir`. "": dir itself. NULL without memory. */
const char *v1_join(struct api_call *c, const char *dir, const char *path);

/* One object of a list, or with a key a member. */
void v1_put_entry(struct json_out *j, const char *key, const char *path,
		  const struct agent_stat *st, const char *target);

int v1_list(struct api_call *c, const struct v1_open_path *a, struct err *err);

#endif
