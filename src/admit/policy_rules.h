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
