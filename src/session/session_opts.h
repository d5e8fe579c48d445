/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller of session_enter() asks for: checked, and made into a record. */
#ifndef LODGE_SESSION_SESSION_OPTS_H
#define LODGE_SESSION_SESSION_OPTS_H

#include "session/session.h"
#include "admit/policy_rules.h"
#include "engine/name_lock.h"
#include "session/user_slot.h"

/* ERR_INVALID with the name of the field. Touches nothing. */
int session_opts_check(struct engine *e, const struct caller *who, const struct session_opts *w,
		       struct err *err);
/* Which template a new one is of. */
int session_opts_template(struct engine *e, const struct caller *who, const struct session_opts *w,
			  char ret[STORE_ID], struct err *err);
/* Whether it is the text of a JSON object, and not too much of it. NULL is. */
int session_metadata_check(const char *text, struct err *err);
/* The record of a new session; *ret is for store_session_fini(). */
int session_opts_to_record(struct engine *e, const struct caller *who, const struct session_opts *w,
			   const struct policy_rules *rules, const char *id,
			   struct store_session *ret, struct err *err);
/* What session_opts_to_record() held of its files, once the record names it or never will. */
void session_opts_release(struct engine *e, const char *id, const char *layer);
/* One caller at a time counts and starts sessions of a user. */
void user_slot_lock(struct engine *e, struct name_lock *l, const struct caller *who,
		    const char *user);
/* Under the user's policy: others of the user are hibernated, or it is refused. `id`: what a new
 * one would get. */
int user_slot_free_one(struct engine *e, const struct caller *who, const struct session_opts *w,
		       const char *id, struct err *err);

#endif
