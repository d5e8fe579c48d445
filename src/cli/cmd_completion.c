/* SPDX-License-Identifier: Apache-2.0 */
/* lodge completion: for bash and zsh, generated from the tables that parse command lines. */
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

typedef void form_fn(const struct command *cmd);

/* Whether it is also a command without a subcommand. */
static bool runs_alone(const struct command *cmd)
{
	return !cmd->subs || cmd->run || cmd->method;
}

/* Calls fn for every command line, in the order of --help. */
static void each_form(form_fn *fn)
{
	for (const struct command *const *c = all_commands; *c; c++) {
		if (runs_alone(*c))
			fn(*c);
		for (const struct command *const *s = (*c)->subs; s && *s; s++)
			fn(*s);
	}
}

/* "\tkeys) subs=(ls add rm) ;;" with these brackets. */
static void print_subs(const char *open, const char *close)
{
	for (const struct command *const *c = all_commands; *c; c++) {
		if (!(*c)->subs)
			continue;
		printf("\t%s) subs=%s", (*c)->name, open);
		for (const struct command *const *s = (*c)->subs; *s; s++)
			printf("%s%s", s == (*c)->subs ? "" : " ", command_verb(*s));
		printf("%s ;;\n", close);
	}
}

static bool takes_session(const struct command *cmd)
{
	return strstr(cmd->usage, "SESSION") != NULL;
}

/* Of the service: lodge run and lodge template have others. */
static bool takes_template(const struct command *cmd)
{
	return strncmp(cmd->name, "templates ", 10) == 0 && strcmp(command_verb(cmd), "add") != 0;
}

/* ---- bash ------------------------------------------------------------------------------------ */

static int bash_option(const struct cli_option *o, void *at, void *arg)
{
	(void)at;
	(void)arg;
	printf(" --%s", o->name);
	return 0;
}

static void bash_form(const struct command *cmd)
{
	printf("\t'%s') sessions=%d templates=%d opts='--help", cmd->name, takes_session(cmd),
	       takes_template(cmd));
	cli_option_each(cmd->options, NULL, bash_option, NULL);
	puts("' ;;");
}

static void print_bash(void)
{
	puts("# bash completion of lodge; made by `lodge completion bash`\n"
	     "_lodge_form() {\n\tcase $1 in");
	each_form(bash_form);
	puts("\t*) return 1 ;;\n\tesac\n}\n\n"
	     "_lodge() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	     "\tlocal cmd=${COMP_WORDS[1]} opts='' sessions=0 templates=0 subs=''\n"
	     "\tCOMPREPLY=()\n"
	     "\tif ((COMP_CWORD == 1)); then");
	printf("\t\tCOMPREPLY=($(compgen -W '--help --version");
	for (const struct command *const *c = all_commands; *c; c++)
		printf(" %s", (*c)->name);
	puts("' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $cmd in");
	print_subs("'", "'");
	puts("\tesac\n"
	     "\t_lodge_form \"$cmd ${COMP_WORDS[2]}\" || _lodge_form \"$cmd\"\n"
	     "\tif [[ $cur == -* ]]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\t((COMP_CWORD == 2)) || subs=''\n"
	     "\tif ((sessions)); then subs+=\" $(\"${COMP_WORDS[0]}\" ls --keys 2>/dev/null)\"; "
	     "fi\n"
	     "\tif [[ $before == --template && $cmd != run ]]; then templates=1; fi\n"
	     "\tif ((templates && COMP_CWORD > 2)); then\n"
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" templates -q 2>/dev/null)\n"
	     "\tfi\n"
	     "\tif [[ $cmd == ls && $before == @(-s|--state) ]]; then\n"
	     "\t\tsubs='" SESSION_STATES "'\n\tfi\n"
	     "\tif [[ $cmd == rollback ]] && ((COMP_CWORD == 3)); then\n"
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" snapshots -q \"${COMP_WORDS[2]}\" 2>/dev/null)\n"
	     "\tfi\n"
	     "\tif [[ $cmd == snapshot && ${COMP_WORDS[2]} == rm && $before != "
	     "--session ]] && ((COMP_CWORD > 2)); then\n"
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" snapshots -q 2>/dev/null)\n"
	     "\tfi\n"
	     "\tCOMPREPLY=($(compgen -W \"$subs\" -- \"$cur\"))\n"
	     "}\n"
	     "complete -o default -F _lodge lodge");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Within single quotes; brackets and colons have a meaning in specs. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static const char *zsh_values(const struct cli_option *o)
{
	return strcmp(o->arg, "FILE") == 0		       ? "_files"
	       : strcmp(o->arg, "SESSION") == 0		       ? "_lodge_sessions"
	       : strcmp(o->arg, "STATE") == 0		       ? "(" SESSION_STATES ")"
	       : o->field && strcmp(o->field, "template") == 0 ? "_lodge_templates"
							       : " ";
}

static int zsh_option(const struct cli_option *o, void *at, void *arg)
{
	(void)at;
	(void)arg;
	for (int i = 0; i < (o->letter ? 2 : 1); i++) {
		if (i)
			printf(" '-%c[", o->letter);
		else
			printf(" '--%s%s[", o->name, o->arg ? "=" : "");
		zsh_text(o->help);
		putchar(']');
		if (o->arg) {
			putchar(':');
			zsh_text(o->arg);
			putchar(':');
			fputs(zsh_values(o), stdout);
		}
		putchar('\'');
	}
	return 0;
}

static void zsh_form(const struct command *cmd)
{
	printf("\t'%s') _arguments -S '--help[show help]'", cmd->name);
	cli_option_each(cmd->options, NULL, zsh_option, NULL);
	printf(" '*:operand:%s' ;;\n", strcmp(cmd->name, "cp") == 0 ? "_lodge_places"
				       : takes_session(cmd)	    ? "_lodge_sessions"
				       : takes_template(cmd)	    ? "_lodge_templates"
								    : "_files");
}

static void print_zsh(void)
{
	puts("#compdef lodge\n# zsh completion of lodge; made by `lodge completion zsh`\n\n"
	     "_lodge_sessions() {\n\tlocal -a ids\n\tids=(${(f)\"$(lodge ls --keys "
	     "2>/dev/null)\"})\n"
	     "\tcompadd -a ids\n}\n\n"
	     "_lodge_templates() {\n\tlocal -a names\n\tnames=(${(f)\"$(lodge templates -q "
	     "2>/dev/null)\"})\n"
	     "\tcompadd -a names\n}\n\n"
	     "_lodge_places() {\n\tlocal -a ids\n\tids=(${(f)\"$(lodge ls --keys 2>/dev/null)\"})\n"
	     "\tcompadd -S : -a ids\n\t_files\n}\n\n"
	     "_lodge() {\n\tlocal form=$words[2]\n\tlocal -a commands subs\n"
	     "\tif ((CURRENT == 2)); then\n\t\tcommands=(");
	for (const struct command *const *c = all_commands; *c; c++) {
		printf("\t\t\t'%s:", (*c)->name);
		zsh_text((*c)->summary);
		puts("'");
	}
	puts("\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase $form in");
	print_subs("(", ")");
	puts("\tesac\n"
	     "\tif ((CURRENT == 3 && $#subs)); then compadd -a subs; fi\n"
	     "\tif ((CURRENT > 3 && $subs[(Ie)$words[3]])); then\n"
	     "\t\tform+=\" $words[3]\"\n\t\tshift words\n\t\t((CURRENT--))\n\tfi\n"
	     "\tshift words\n\t((CURRENT--))\n\tcase $form in");
	each_form(zsh_form);
	puts("\tesac\n}\n\n_lodge \"$@\"");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(struct api_cmd *a, struct err *err)
{
	if (strcmp(a->argv[0], "bash") == 0)
		print_bash();
	else if (strcmp(a->argv[0], "zsh") == 0)
		print_zsh();
	else
		return api_cmd_misuse(a, err, "unknown shell \"%.40s\"; use bash or zsh",
				      a->argv[0]);
	return 0;
}

const struct command cmd_completion = {
	.name = "completion",
	.usage = "bash|zsh",
	.summary = "print shell completions",
	.more = "Examples\n"
		"  source <(lodge completion bash)\n",
	.local = true,
	.least = 1,
	.most = 1,
	.run = run,
};
