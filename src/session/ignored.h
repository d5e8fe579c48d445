/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_IGNORED_H
#define LODGE_SESSION_IGNORED_H

#include "session/enter.h"

/* What a request that led to an existing session asked for in vain: fields for a new session whose
 * value differs from what the record holds. */
struct session_fields ignored_fields(struct engine *e, const struct session_opts *w,
				     const struct store_session *s);

#endif
