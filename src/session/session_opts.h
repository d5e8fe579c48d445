/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller of session_enter() asks for: checked, and made into a record. */
#ifndef LODGE_SESSION_SESSION_OPTS_H
#define LODGE_SESSION_SESSION_OPTS_H

#include "session/session.h"
#include "admit/policy_rules.h"
#include "engine/name_lock.h"
#include "session/user_slot.h"

/* ERR_INVALID with the name of the field. Touches nothing. */
int session_opts_check(struct engine *e, const struct caller *caller, const struct session_opts *w,
		       struct err *err);
/* Which template a new one is of. */
int session_opts_template(struct engine *e, const struct caller *caller,
			  const struct session_opts *w, char ret[STORE_ID], struct err *err);
/* Whether it is the text of a JSON object, and not too much of it. NULL is. */
int session_metadata_check(const char *text, struct err *err);
/* ERR_INVALID that names both fields if the limits of a session itself (may be NULL) have more
 * output than this memory allows. */
int session_output_check(const struct template *own, uint64_t memory_bytes, struct err *err);
/* The record of a new session; *ret is for store_session_fini(). */
int session_opts_to_record(struct engine *e, const struct caller *caller,
			   const struct session_opts *w, const struct policy_rules *rules,
			   const char *id, struct session_fields *adjusted,
			   struct store_session *ret, struct err *err);
/* What session_opts_to_record() held of its files, once the record names it or never will. */
void session_opts_release(struct engine *e, const char *id, const char *layer);
/* What a caller of session_enter() is under: the rules of the session that is there, else those it
 * asks for, else its template's. *w gets what they say of times, number and user. `user` is the
 * memory for that. */
int session_opts_rules(struct engine *e, const struct caller *caller, struct session_opts *w,
		       char user[STORE_USER], struct policy_rules *ret, struct err *err);

#endif
