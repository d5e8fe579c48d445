/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_QUERY_H
#define LODGE_SESSION_QUERY_H

#include "session/session.h"

/* Sentences for what is not there, and the reason if it was. */
void session_ref_set_not_found(const struct session_ref *ref, struct err *err);

static inline int session_ref_not_found(const struct session_ref *ref, struct err *reterr)
{
	session_ref_set_not_found(ref, reterr);
	return -1;
}

void session_ref_set_gone(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, struct err *err);

static inline int session_ref_gone(struct engine *e, const struct caller *caller,
				   const struct session_ref *ref, struct err *reterr)
{
	session_ref_set_gone(e, caller, ref, reterr);
	return -1;
}

int session_ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err);

#endif
