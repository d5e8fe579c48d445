/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_RECONCILE_H
#define LODGE_SESSION_RECONCILE_H

#include "session/session.h"

/* From whatever a crash, a failure or the death of the sandbox left, to a state at rest or a
 * running sandbox. */
int reconcile_session(struct session *n, struct err *err);
/* Why its sandbox, which is dead, counts as such. The result may refer to `text`. */
struct session_cause_opts reconcile_cause(struct session *n, char text[STORE_TEXT]);
/* For a session that was PROVISIONING or RESTORING: destroys the sandbox and puts the files
 * back. Until it succeeds, the record must keep naming the sandbox. */
int reconcile_undo_start(struct session *n, struct err *err);

#endif
