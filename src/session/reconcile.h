/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_RECONCILE_H
#define LODGE_SESSION_RECONCILE_H

#include "session/session.h"

/* From whatever a crash, a failure or the death of the sandbox left to a state at rest or live. */
int reconcile_session(struct session *n, struct err *err);
/* Of one that was PROVISIONING or RESTORING: the sandbox goes, and the files are where they were
 * before. Until it succeeds the record must go on naming the sandbox. */
int reconcile_undo_start(struct session *n, struct err *err);

#endif
