/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the engine follows it; for the files of this directory only. */
#ifndef LODGE_ADMIT_POLICY_RULES_H
#define LODGE_ADMIT_POLICY_RULES_H

#include "engine/internal.h"
#include "admit/policy.h"

struct rules {
	struct store_policy policy; /* name "": none, and nothing else is said */
	struct template most; /* its limits */
};

#define RULES_DEFAULT "default"

/* name "": no rules. *ret is always fit for rules_fini(). ERR_NOT_FOUND names the policy. */
int rules_load(struct engine *e, const char *tenant, const char *name, struct rules *ret,
	       struct err *err);
void rules_fini(struct rules *r);
DEFINE_AUTO(struct rules *, rules_fini);
/* ERR_INVALID if what somebody asks for is more than they allow. */
int rules_allow(const struct rules *r, const struct template *asked, struct err *err);
/* The time, or the policy's where there is none or it is shorter. 0: nothing said. */
int64_t rules_time(int64_t wanted, int64_t most);

/* What a caller of session_enter() is under: the rules of the session that is there, else those it
 * asks for, else its template's. *w gets what they say of times, number and user. `user` is the
 * memory for that. */
int rules_of(struct engine *e, const struct caller *who, struct session_want *w,
	     char user[STORE_USER], struct rules *ret, struct err *err);

/* Before a session wakes that is under rules: the others of its user make place, and nobody takes
 * it until place_give(). Nobody's turn may be held. */
struct place_turn {
	struct engine *engine; /* NULL: nothing is held */
	char name[STORE_NAME + STORE_USER + 8];
};
bool place_is_needed(const struct store_session *s);
int place_take(struct engine *e, const struct caller *who, const struct store_session *s,
	       struct place_turn *ret, struct err *err);
/* entry_use() of a session that may wake, in its place. *turn is held until place_give(). */
int place_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      int64_t if_version, struct entry **ret, struct place_turn *turn, struct err *err);
void place_give(struct place_turn *t);
DEFINE_AUTO(struct place_turn *, place_give);

/* Of a command that is about to start in a session under a policy: ERR_DENIED with sys ENOEXEC, and
 * *refusal if that is not NULL. *ret, for shell_rules_fini(), are the rules it runs under. */
struct run_want;
int rules_check_run(struct engine *e, const struct store_session *s, const struct run_want *w,
		    struct shell_rules *ret, struct err *err);
/* What it may execute, as AGENT_ONLY has it; NULL: anything. The caller's. */
int rules_only(const struct shell_rules *r, const struct run_want *w, const struct template *t,
	       char **ret, struct err *err);

/* One at a time changes what templates and policies there are. */
#define RULES_TURN "templates"

#endif
