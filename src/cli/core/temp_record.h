/* SPDX-License-Identifier: Apache-2.0 */
/* A session or snapshot for the time of one command. lodge deletes it at the end, or when a signal
 * ends the command. If lodge is killed, the service deletes a session after a minute without use.
 */
#ifndef LODGE_CLI_CORE_TEMP_RECORD_H
#define LODGE_CLI_CORE_TEMP_RECORD_H

#include "cli/core/api_cmd.h"

struct temp_record {
	bool snapshot; /* else a session */
	char id[128]; /* empty: none yet */
};

/* POST `body` to `path`, which creates or forks a session, or takes a snapshot. One at a time. */
int temp_record_new(struct api_cmd *a, const char *path, const json_t *body,
		    struct temp_record *ret, struct err *err);
void temp_record_end(struct temp_record *t); /* may be empty */

#endif
