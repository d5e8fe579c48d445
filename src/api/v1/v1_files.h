/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the file routes.
 *
 * A path is relative to the session's working directory, unless it starts with a slash once
 * decoded: "files/a/b" is a/b there, "files//etc/hosts" and "files/%2Fetc/hosts" are both
 * /etc/hosts (encode the slash: some proxies merge two slashes into one). "" is the working
 * directory itself. lodged does not interpret paths: lodge-init resolves ".." and links inside the
 * sandbox, with the permissions of the session's user. */
#ifndef LODGE_API_V1_V1_FILES_H
#define LODGE_API_V1_V1_FILES_H

#include <sys/stat.h>

#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "sandbox/files_client.h"

struct v1_open_path {
	struct side_conn *conn;
	struct sandbox *sb;
	const struct template *spec; /* settings of the session */
	const char *user; /* NULL: the default user */
	const char *given; /* the path as requested */
	char path[AGENT_PATH_MAX]; /* the path as sent to the sandbox */
};

/* Opens the session of the first path parameter and a path in it, until the call ends. Resumes it
 * unless the query has resume=0, and sets a response header then. */
int v1_open_path(struct api_call *c, const char *given, struct v1_open_path *ret, struct err *err);
/* The same for the session with this id. */
int v1_open_session_path(struct api_call *c, const char *id, const char *given, bool resume,
			 struct v1_open_path *ret, struct err *err);
/* Joins `path` to `dir`; "": dir itself. NULL: out of memory. */
const char *v1_join(struct api_call *c, const char *dir, const char *path);

/* Writes an entry as an item of a list, or with a key as a member. */
void v1_put_entry(struct json_out *j, const char *key, const char *path,
		  const struct agent_stat *st, const char *target);
const char *v1_base_name(const char *path); /* after the last slash */
bool v1_is_gone(void *rq); /* http_is_gone(), for calls that can be cancelled */

#endif
