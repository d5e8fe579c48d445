/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_QUERY_H
#define LODGE_SESSION_QUERY_H

#include "session/session.h"

/* Both return -1: ERR_NOT_FOUND; and, unless there is no tombstone, who destroyed it and when. */
int session_ref_not_found(const struct session_ref *ref, struct err *err);
int session_ref_gone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct err *err);

int session_ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err);

#endif
