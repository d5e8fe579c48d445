/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs the commands of a session may start. src/shell checks the text of a command, and
 * the kernel enforces the allow-list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/command_policy.h"
#include "shell/shell_tables.h"
#include "shell/shell_variables.h"

/* ---- the record ------------------------------------------------------------------------------ */

int policy_set_commands(struct store_policy *p, const char *json, struct err *err)
{
	struct shell_rules r = { 0 };
	char *text = NULL;

	if (json) {
		if (shell_rules_parse(json, strlen(json), &r, err) < 0)
			return err_ctx(err, "commands");
		text = shell_rules_print(&r);
		shell_rules_fini(&r);
		if (!text)
			return err_sys(err, ENOMEM, "commands");
		if (strlen(text) > STORE_JSON_MAX) {
			free(text);
			return err_set(err, ERR_INVALID, "commands: longer than %d bytes",
				       STORE_JSON_MAX);
		}
	}
	free(p->commands);
	p->commands = text;
	return 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* sys ENOEXEC distinguishes this refusal from other reasons for ERR_DENIED. */
static int deny_word(const struct exec_opts *opts, const struct shell_rules *r, const char *policy,
		     const struct shell_word *bad, struct err *err)
{
	struct policy_refusal refusal = { .offset = bad->offset,
					  .line = bad->line,
					  .column = bad->column };

	snprintf(refusal.policy, sizeof(refusal.policy), "%s", policy);
	snprintf(refusal.word, sizeof(refusal.word), "%s", bad->name);
	shell_tell(r, bad, refusal.reason);
	if (opts->refusal)
		*opts->refusal = refusal;
	if (refusal.line)
		err_set(err, ERR_DENIED, "command: '%.60s' at line %u, column %u %s", refusal.word,
			refusal.line, refusal.column, refusal.reason);
	else
		err_set(err, ERR_DENIED, "env: '%.60s' %s", refusal.word, refusal.reason);
	err->sys = ENOEXEC;
	return -1;
}

/* Fails if the policy was deleted, so that its sessions start nothing. */
static int load_rules(struct engine *e, const char *tenant, const char *name,
		      struct shell_rules *ret, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };

	if (policy_get(e, tenant, name, &p, err) < 0)
		return -1;
	if (p.commands && shell_rules_parse(p.commands, strlen(p.commands), ret, err) < 0)
		return err_ctx(err, "commands of policy \"%s\"", p.name);
	return 0;
}

int policy_check_command(struct engine *e, const char *tenant, const char *name, const char *text,
			 struct policy_verdict *ret, struct err *err)
{
	auto_fini(policy_verdict_fini) struct policy_verdict v = { 0 };

	if (load_rules(e, tenant, name, &v.rules, err) < 0 ||
	    shell_parse(text, strlen(text), &v.words, err) < 0)
		return -1;
	*ret = steal_struct(&v);
	return 0;
}

void policy_verdict_fini(struct policy_verdict *v)
{
	shell_rules_fini(&v->rules);
	shell_words_fini(&v->words);
}

static bool needs_no_check(const struct shell_rules *r, const struct exec_opts *opts)
{
	if (!r->allow.said && !r->deny.said)
		return true;
	return opts->interactive_shell && r->allow.said &&
	       !shell_names_have(&r->deny, opts->argv[0]) && shell_can_enforce();
}

static int check_words(const struct shell_rules *r, const struct exec_opts *opts,
		       const char *policy, struct err *err)
{
	auto_fini(shell_words_fini) struct shell_words words = { 0 };
	const struct shell_word *bad;

	if ((opts->text ? shell_parse(opts->text, strlen(opts->text), &words, err)
			: shell_parse_argv(opts->argv, &words, err)) < 0) {
		if (err->code == ERR_INVALID)
			err->sys = ENOEXEC; /* the command itself is invalid */
		return -1;
	}
	bad = shell_refused(r, &words);
	return bad ? deny_word(opts, r, policy, bad, err) : 0;
}

/* The caller sets the variables of a command as well as its text, so both are checked. */
static int check_env(const struct shell_rules *r, const struct exec_opts *opts, const char *policy,
		     struct err *err)
{
	for (size_t i = 0; opts->env && opts->env[i]; i++) {
		char name[SHELL_NAME_MAX + 1];
		struct shell_word word = { .name = name, .kind = SHELL_SETTING };
		size_t len = strcspn(opts->env[i], "=");
		const char *why;

		if (!shell_is_setting(opts->env[i], len))
			continue;
		snprintf(name, sizeof(name), "%.*s",
			 (int)(len < sizeof(name) ? len : sizeof(name) - 1), opts->env[i]);
		if (!shell_allows(r, &word, &why))
			return deny_word(opts, r, policy, &word, err);
	}
	return 0;
}

int policy_check_exec(struct engine *e, const struct store_session *s, const struct exec_opts *opts,
		      struct shell_rules *ret, struct err *err)
{
	auto_fini(shell_rules_fini) struct shell_rules r = { 0 };

	if (!*s->policy)
		return 0;
	if (load_rules(e, s->tenant, s->policy, &r, err) < 0 ||
	    (!needs_no_check(&r, opts) && check_words(&r, opts, s->policy, err) < 0) ||
	    check_env(&r, opts, s->policy, err) < 0)
		return -1;
	*ret = steal_struct(&r);
	return 0;
}

/* ---- enforcement ----------------------------------------------------------------------------- */

static bool is_standard(const char *dir, size_t len)
{
	for (size_t i = 0; shell_path[i]; i++)
		if (strlen(shell_path[i]) == len && !memcmp(shell_path[i], dir, len))
			return true;
	return false;
}

/* Uses PATH of the session, not of the command. */
static void put_dirs(FILE *f, const struct template *t)
{
	const char *own = NULL;
	size_t count = 0;

	for (; shell_path[count]; count++)
		fprintf(f, "%s/:", shell_path[count]);
	for (size_t i = 0; i < t->nenv; i++)
		if (strncmp(t->env[i], "PATH=", 5) == 0)
			own = t->env[i] + 5;
	while (own && *own && count < AGENT_LANDLOCK_DIRS) {
		size_t len = strcspn(own, ":");

		if (len > 1 && own[0] == '/' && own[len - 1] != '/' && !is_standard(own, len)) {
			fprintf(f, "%.*s/:", (int)len, own);
			count++;
		}
		own += len + (own[len] == ':');
	}
}

int policy_exec_allowlist(const struct shell_rules *r, const struct exec_opts *opts,
			  const struct template *t, char **ret, struct err *err)
{
	char *text = NULL;
	size_t size;
	FILE *f;

	if (!r->allow.said)
		return 0;
	f = open_memstream(&text, &size);
	if (!f)
		return err_sys(err, ENOMEM, "policy");
	put_dirs(f, t);
	for (size_t i = 0; i < r->allow.count; i++)
		if (!shell_names_have(&r->deny, r->allow.items[i]))
			fprintf(f, "%s:", r->allow.items[i]);
	if (opts->interactive_shell)
		fprintf(f, "%s:", opts->argv[0]);
	if (fclose(f) != 0) {
		free(text);
		return err_sys(err, ENOMEM, "policy");
	}
	*ret = text;
	return 0;
}
