/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the engine follows it; for the files of this directory only. */
#ifndef LODGE_ADMIT_POLICY_RULES_H
#define LODGE_ADMIT_POLICY_RULES_H

#include "engine/internal.h"
#include "admit/policy.h"

struct policy_rules {
	struct store_policy policy; /* name "": none, and nothing else is said */
	struct template most; /* its limits */
};

#define POLICY_DEFAULT_NAME "default"

/* name "": no rules. *ret is always fit for policy_rules_fini(). ERR_NOT_FOUND names the policy. */
int policy_rules_load(struct engine *e, const char *tenant, const char *name,
		      struct policy_rules *ret, struct err *err);
void policy_rules_fini(struct policy_rules *r);
DEFINE_AUTO(struct policy_rules *, policy_rules_fini);
/* ERR_INVALID if what somebody asks for is more than they allow. */
int policy_rules_check(const struct policy_rules *r, const struct template *asked, struct err *err);
/* The time, or the policy's where there is none or it is shorter. 0: nothing said. */
int64_t policy_rules_clamp_ms(int64_t wanted, int64_t most);

/* Of a command that is about to start in a session under a policy: ERR_DENIED with sys ENOEXEC, and
 * *refusal if that is not NULL. *ret, for shell_rules_fini(), are the rules it runs under. */
struct exec_opts;
int policy_check_exec(struct engine *e, const struct store_session *s, const struct exec_opts *w,
		      struct shell_rules *ret, struct err *err);
/* What it may execute, as AGENT_LANDLOCK has it; NULL: anything. The caller's. */
int policy_exec_allowlist(const struct shell_rules *r, const struct exec_opts *w,
			  const struct template *t, char **ret, struct err *err);

/* One at a time changes what templates and policies there are. */
#define TEMPLATES_LOCK_NAME "templates"

#endif
