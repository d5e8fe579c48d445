/* SPDX-License-Identifier: Apache-2.0 */
/* A session for the time of one command. lodge deletes it at the end, or when a signal ends the
 * command; if lodge is killed, the service deletes it after a minute without use. */
#ifndef LODGE_CLI_SESSION_TEMP_SESSION_H
#define LODGE_CLI_SESSION_TEMP_SESSION_H

#include "cli/core/api_cmd.h"

struct temp_session {
	char id[128]; /* empty: none yet */
};

/* POST `body` to `path`, which creates or forks a session. One at a time. */
int temp_session_new(struct api_cmd *a, const char *path, const json_t *body,
		     struct temp_session *ret, struct err *err);
void temp_session_end(struct temp_session *t); /* may be empty */

#endif
