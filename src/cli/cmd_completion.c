/* SPDX-License-Identifier: Apache-2.0 */
/* lodge completion: for bash, zsh and fish, generated from the tables that parse command lines. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

typedef void form_fn(const struct command *cmd);

/* Calls fn for every command line, in the order of --help. */
static void each_form(form_fn *fn)
{
	for (const struct command *const *c = all_commands; *c; c++) {
		if (!(*c)->subs)
			fn(*c);
		for (const struct command *const *s = (*c)->subs; s && *s; s++)
			fn(*s);
	}
}

/* "\tkey) subs=(ls create rm) ;;" with these brackets. */
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

static bool takes_template(const struct command *cmd)
{
	return strncmp(cmd->name, "template ", 9) == 0 && strcmp(command_verb(cmd), "create") != 0;
}

/* The options of a command, with those that it has only with --local. */
static void each_option(const struct command *cmd, cli_option_visit_fn *fn)
{
	cli_option_each(cmd->options, NULL, fn, NULL);
	cli_option_each_of_twin(cmd, fn, NULL);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static int bash_option(const struct cli_option *o, void *at, void *arg)
{
	(void)at;
	(void)arg;
	if (!o->old)
		printf(" --%s", o->name);
	return 0;
}

static void bash_form(const struct command *cmd)
{
	printf("\t'%s') sessions=%d templates=%d opts='--help", cmd->name, takes_session(cmd),
	       takes_template(cmd));
	each_option(cmd, bash_option);
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
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" template ls -q 2>/dev/null)\n"
	     "\tfi\n"
	     "\tif [[ $cmd == ls && $before == @(-s|--state) ]]; then\n"
	     "\t\tsubs='" SESSION_STATES "'\n\tfi\n"
	     "\tif [[ $cmd == rollback ]] && ((COMP_CWORD == 3)); then\n"
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" snapshot ls -q \"${COMP_WORDS[2]}\" 2>/dev/null)\n"
	     "\tfi\n"
	     "\tif [[ $cmd == snapshot && ${COMP_WORDS[2]} == @(rm|inspect) && $before != "
	     "--session ]] && ((COMP_CWORD > 2)); then\n"
	     "\t\tsubs=$(\"${COMP_WORDS[0]}\" snapshot ls -q 2>/dev/null)\n"
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
	for (int i = 0; i < (o->letter ? 2 : 1) && !o->old; i++) {
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
	each_option(cmd, zsh_option);
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
	     "_lodge_templates() {\n\tlocal -a names\n\tnames=(${(f)\"$(lodge template ls -q "
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

/* ---- fish ------------------------------------------------------------------------------------ */

static const char fish_sessions[] = "(lodge ls --keys 2>/dev/null)",
		  fish_templates[] = "(lodge template ls -q 2>/dev/null)";

/* Within single quotes. */
static void fish_text(const char *text)
{
	for (; *text; text++)
		printf(strchr("'\\", *text) ? "\\%c" : "%c", *text);
}

static const char *fish_values(const struct cli_option *o)
{
	return strcmp(o->arg, "SESSION") == 0		       ? fish_sessions
	       : strcmp(o->arg, "STATE") == 0		       ? SESSION_STATES
	       : o->field && strcmp(o->field, "template") == 0 ? fish_templates
							       : NULL;
}

static const struct command *fish_command; /* whose options are printed */

static int fish_option(const struct cli_option *o, void *at, void *arg)
{
	const char *values = o->arg ? fish_values(o) : NULL;

	(void)at;
	(void)arg;
	if (o->old)
		return 0;
	printf("complete -c lodge -n '__lodge_is %s' -l %s", fish_command->name, o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->arg)
		fputs(strcmp(o->arg, "FILE") == 0 ? " -rF" : " -x", stdout);
	if (values)
		printf(" -a '%s'", values);
	fputs(" -d '", stdout);
	fish_text(o->help);
	puts("'");
	return 0;
}

static void fish_form(const struct command *cmd)
{
	const char *operands = takes_session(cmd)    ? fish_sessions
			       : takes_template(cmd) ? fish_templates
						     : NULL;

	fish_command = cmd;
	printf("complete -c lodge -n '__lodge_is %s' -l help -s h -d 'show help'\n", cmd->name);
	each_option(cmd, fish_option);
	if (operands)
		printf("complete -c lodge -n '__lodge_is %s' -a '%s'\n", cmd->name, operands);
	if (!takes_template(cmd) && (!operands || strcmp(cmd->name, "cp") == 0))
		printf("complete -c lodge -n '__lodge_is %s' -F\n", cmd->name);
}

static void fish_words(const char *group, const struct command *const *all)
{
	for (; *all; all++) {
		printf("complete -c lodge -n '__lodge_at %s' -a %s -d '", group,
		       command_verb(*all));
		fish_text((*all)->summary);
		puts("'");
	}
}

static void print_fish(void)
{
	puts("# fish completion of lodge; made by `lodge completion fish`\n"
	     "function __lodge_is # WORD...: the command line begins with these\n"
	     "\tset -l words (commandline -opc)\n"
	     "\tset -l n (count $argv)\n"
	     "\ttest (count $words) -gt $n; or return 1\n"
	     "\tset -l first $words[2..(math $n + 1)]\n"
	     "\ttest \"$first\" = \"$argv\"\n"
	     "end\n"
	     "function __lodge_at # WORD...: and the next word is the one at the cursor\n"
	     "\ttest (count (commandline -opc)) -eq (math (count $argv) + 1)\n"
	     "\tand begin\n\t\ttest (count $argv) -eq 0; or __lodge_is $argv\n\tend\n"
	     "end\n"
	     "complete -c lodge -f");
	fish_words("", all_commands);
	for (const struct command *const *c = all_commands; *c; c++)
		if ((*c)->subs)
			fish_words((*c)->name, (*c)->subs);
	each_form(fish_form);
}

/* ---- install --------------------------------------------------------------------------------- */

static const struct shell {
	const char *name;
	void (*print)(void);
	const char *variable, *home_dir; /* the base directory, or below HOME */
	const char *path; /* below it */
	bool needs_fpath;
} shells[] = {
	{ "bash", print_bash, "XDG_DATA_HOME", ".local/share", "bash-completion/completions/lodge",
	  false },
	{ "zsh", print_zsh, "XDG_DATA_HOME", ".local/share", "zsh/site-functions/_lodge", true },
	{ "fish", print_fish, "XDG_CONFIG_HOME", ".config", "fish/completions/lodge.fish", false },
};

static const struct shell *find_shell(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	for (size_t i = 0; name && i < ARRAY_LEN(shells); i++)
		if (strcmp(shells[i].name, slash ? slash + 1 : name) == 0)
			return &shells[i];
	return NULL;
}

static int shell_path(const struct shell *s, char ret[PATH_MAX], struct err *err)
{
	const char *base = getenv(s->variable), *home = getenv("HOME");
	int n;

	if (base && base[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/%s", base, s->path);
	else if (home && home[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/%s/%s", home, s->home_dir, s->path);
	else
		return err_set(err, ERR_NOT_FOUND, "HOME is not set");
	return n < PATH_MAX ? 0 : err_set(err, ERR_INVALID, "HOME: path is too long");
}

static int make_parents(char *path, struct err *err)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		int r;

		*p = '\0';
		r = mkdir(path, 0755);
		if (r < 0 && errno != EEXIST)
			return err_sys(err, errno, "%s", path);
		*p = '/';
	}
	return 0;
}

static int install(const struct shell *s, struct err *err)
{
	char path[PATH_MAX];
	int saved;

	if (shell_path(s, path, err) < 0 || make_parents(path, err) < 0)
		return -1;
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	if (saved < 0 || !freopen(path, "w", stdout))
		return err_sys(err, errno, "%s", path);
	s->print();
	if (fflush(stdout) != 0)
		return err_sys(err, errno, "%s", path);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	printf("installed %s\n", path);
	if (s->needs_fpath)
		printf("add to ~/.zshrc, before compinit: fpath=(%.*s $fpath)\n",
		       (int)(strrchr(path, '/') - path), path);
	return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(struct api_cmd *a, struct err *err)
{
	/* Only the flush at the end can tell why the output cannot be written. */
	static char all[1 << 17];
	bool installs = strcmp(a->argv[0], "install") == 0;
	const char *name = installs ? a->argc > 1 ? a->argv[1] : getenv("SHELL") : a->argv[0];
	const struct shell *s = find_shell(name);

	if (!s || (!installs && a->argc > 1))
		return api_cmd_misuse(a, err, "unknown shell \"%.40s\"; use bash, zsh or fish",
				      name ? name : "");
	if (installs)
		return install(s, err);
	(void)setvbuf(stdout, all, _IOFBF, sizeof(all));
	s->print();
	return 0;
}

const struct command cmd_completion = {
	.name = "completion",
	.usage = "bash|zsh|fish\n"
		 "       lodge completion install [bash|zsh|fish]",
	.summary = "print or install shell completions",
	.about = "`install` writes them where the shell finds them (that of SHELL by default).\n",
	.more = "Examples\n"
		"  source <(lodge completion bash)\n"
		"  lodge completion install\n",
	.local = true,
	.least = 1,
	.most = 2,
	.run = run,
};
