/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_COMMAND_POLICY_H
#define LODGE_EXEC_COMMAND_POLICY_H

#include "admit/policy.h"
#include "exec/exec_start.h"

/* Sets store_policy.commands from a JSON object; NULL: no rules. */
int policy_set_commands(struct store_policy *p, const char *json, struct err *err);

/* Checks each word of a bash text against the policy. */
struct policy_verdict {
	struct shell_rules rules;
	struct shell_words words; /* for shell_put_verdict() */
};
int policy_check_command(struct engine *e, const char *tenant, const char *name, const char *text,
			 struct policy_verdict *ret, struct err *err);
void policy_verdict_fini(struct policy_verdict *v);
DEFINE_AUTO(struct policy_verdict *, policy_verdict_fini);

/* Checks a command before it starts. ERR_DENIED with sys ENOEXEC: refused; opts->refusal, unless
 * NULL, has the word. *ret, for shell_rules_fini(), are the rules it runs under. */
int policy_check_exec(struct engine *e, const struct store_session *s, const struct exec_opts *opts,
		      struct shell_rules *ret, struct err *err);
/* Returns the programs that the command may execute in the format of AGENT_LANDLOCK, for free();
 * NULL: all. */
int policy_exec_allowlist(const struct shell_rules *r, const struct exec_opts *opts,
			  const struct template *t, char **ret, struct err *err);

#endif
