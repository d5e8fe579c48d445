/* SPDX-License-Identifier: Apache-2.0 */
/* A session for the time of one command: destroyed when it ends, also by a signal; and should the
 * command be killed, by the service when nobody used it for a minute. */
#ifndef LODGE_CLI_SESSION_TEMP_SESSION_H
#define LODGE_CLI_SESSION_TEMP_SESSION_H

#include "cli/core/api_cmd.h"

struct temp_session {
	char id[128]; /* empty: none yet */
};

/* Asks for one by `path` and `body`; the answer is that of entering, or of a fork. One
 * at a time. */
int temp_session_new(struct api_cmd *a, const char *path, const json_t *body,
		     struct temp_session *ret, struct err *err);
void temp_session_end(struct temp_session *t); /* an empty one is allowed */

#endif
