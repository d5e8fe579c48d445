/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_QUERY_H
#define LODGE_SESSION_QUERY_H

#include "engine/internal.h"

/* Sentences for what is not there, and the reason if it was. */
void ref_say_unknown(const struct session_ref *ref, struct err *err);

static inline int ref_unknown(const struct session_ref *ref, struct err *reterr)
{
	ref_say_unknown(ref, reterr);
	return -1;
}

void ref_say_gone(struct engine *e, const struct caller *who, const struct session_ref *ref,
		  struct err *err);

static inline int ref_gone(struct engine *e, const struct caller *who,
			   const struct session_ref *ref, struct err *reterr)
{
	ref_say_gone(e, who, ref, reterr);
	return -1;
}

int ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err);

#endif
