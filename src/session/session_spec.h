/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_SESSION_SPEC_H
#define LODGE_SESSION_SESSION_SPEC_H

#include "engine/engine.h"
#include "sandbox/template/template.h"

struct session;

/* The template merged with the session's options, within the limits of its policy. *ret is an
 * initialized template before, and for template_fini() after the call. */
int spec_load(struct engine *e, const struct store_session *s, struct template *ret,
	      struct err *err);
/* The limits of that. */
int spec_limits(struct engine *e, const struct store_session *s, struct limits *ret,
		struct err *err);
/* The template that its files lie on, which is its own one unless that is made of a layer. */
int spec_base(struct engine *e, const struct store_session *s, char ret[STORE_ID], struct err *err);
/* Of one that is about to get a sandbox: its template and policy may say something else than they
 * did the last time. */
int spec_refresh(struct session *n, struct err *err);
/* Limits of its sandbox: of the session, else its template, else the defaults; within its policy.
 * The defaults if the template cannot be read. */
void session_limits(struct engine *e, const struct store_session *s, struct limits *ret);

#endif
