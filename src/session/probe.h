/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PROBE_H
#define LODGE_SESSION_PROBE_H

#include "engine/engine.h"

struct session;

/* True only while its sandbox runs. */
bool session_is_valid(struct engine *e, const struct caller *caller, const struct session_ref *ref);

enum session_probe_status {
	SESSION_PROBE_CONNECTED = 1, /* verified */
	SESSION_PROBE_UNKNOWN, /* no answer in time: nothing changed; try again */
	SESSION_EXPIRED, /* gone; the record was updated */
	SESSION_PROBE_NO_SANDBOX,
};
struct session_probe_result {
	enum session_probe_status status;
	struct store_cause cause;
	int64_t expires_at, retry_after_ms;
};
/* Never postpones a deadline. deadline_ms 0: the default. */
int session_probe(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t deadline_ms, struct session_probe_result *ret, struct err *err);

/* Whether processes work in the sandbox although no client is connected. */
bool session_is_working(struct session *n);
/* FAILED to ACTIVE for a sandbox that runs after all, with its former deadlines. */
int session_revive(struct session *n, struct err *err);

#endif
