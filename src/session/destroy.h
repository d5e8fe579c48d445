/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_DESTROY_H
#define LODGE_SESSION_DESTROY_H

#include "session/session.h"

/* Writes the tombstone, ends the sandbox and removes the record; the session is empty
 * afterwards. */
int destroy_session(struct session *n, const struct session_cause_opts *why, struct err *err);
/* The second half, from DESTROYING. */
int destroy_finish(struct session *n, struct err *err);

#endif
