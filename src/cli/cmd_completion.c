/* SPDX-License-Identifier: Apache-2.0 */
/* lodge completion: for bash and zsh, made of the tables that parse the command lines. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/options.h"
#include "cli/core/print_session.h"

/* Commands of several. One with `alone` is also something without a name behind it. */
static const struct {
	const char *name;
	bool alone;
	const char *subs[8];
} families[] = {
	{ "template", false, { "add", "ls", "rm" } },
	{ "policy", false, { "test", "ls", "show", "set", "rm" } },
	{ "keys", false, { "ls", "add", "rm" } },
	{ "templates", false, { "ls", "show", "add", "set", "rm", "env" } },
	{ "users", false, { "ls", "show", "quota" } },
	{ "projects", false, { "ls", "show", "add", "rm", "fragments", "save" } },
	{ "teams", false, { "ls", "add", "rm" } },
	{ "snapshot", true, { "rm" } },
};

struct writer {
	void (*form)(const char *name, const char *sub, const struct cli_option_command *cmd);
	const char *name, *sub; /* what is asked now; sub NULL: none */
};

static void take(void *arg, const struct cli_option_command *cmd)
{
	const struct writer *w = arg;

	w->form(w->name, w->sub, cmd);
}

static void ask_for(struct writer *w, const char *name, const char *sub)
{
	char command[64], part[64], help[] = "--help";
	char *with[] = { command, part, help, NULL }, *without[] = { command, help, NULL };

	snprintf(command, sizeof(command), "%s", name);
	snprintf(part, sizeof(part), "%s", sub ? sub : "");
	w->name = name;
	w->sub = sub;
	(void)cmd_call(name, sub ? 3 : 2, sub ? with : without);
}

static const char *const *subs_of(const char *name, bool *alone)
{
	*alone = true;
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (strcmp(families[i].name, name) == 0) {
			*alone = families[i].alone;
			return families[i].subs;
		}
	return NULL;
}

/* Every command line there is, in the order of --help. */
static void each_form(struct writer *w)
{
	const char *name, *summary;
	bool alone;

	cli_option_help_to(take, w);
	for (unsigned i = 0; (name = cmd_name(i, &summary)); i++) {
		const char *const *subs = subs_of(name, &alone);

		if (alone)
			ask_for(w, name, NULL);
		for (; subs && *subs; subs++)
			ask_for(w, name, *subs);
	}
	cli_option_help_to(NULL, NULL);
}

static bool wants_session(const struct cli_option_command *cmd)
{
	return strstr(cmd->usage, "SESSION") != NULL;
}

/* Of the service: lodge run and lodge template have others. */
static bool wants_template(const char *name, const char *sub)
{
	return strcmp(name, "templates") == 0 && sub && strcmp(sub, "add") != 0;
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_form(const char *name, const char *sub, const struct cli_option_command *cmd)
{
	printf("\t'%s%s%s') sessions=%d templates=%d opts='--help", name, sub ? " " : "",
	       sub ? sub : "", wants_session(cmd), wants_template(name, sub));
	for (const struct cli_option *o = cmd->opts; o->name; o++)
		printf(" --%s", o->name);
	puts("' ;;");
}

static void print_bash(void)
{
	struct writer w = { .form = bash_form };
	const char *name, *summary;

	puts("# bash completion of lodge; made by `lodge completion bash`\n"
	     "_lodge_form() {\n\tcase $1 in");
	each_form(&w);
	puts("\t*) return 1 ;;\n\tesac\n}\n\n"
	     "_lodge() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	     "\tlocal cmd=${COMP_WORDS[1]} opts='' sessions=0 templates=0 subs=''\n"
	     "\tCOMPREPLY=()\n"
	     "\tif ((COMP_CWORD == 1)); then");
	printf("\t\tCOMPREPLY=($(compgen -W '--help --version");
	for (unsigned i = 0; (name = cmd_name(i, &summary)); i++)
		printf(" %s", name);
	puts("' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $cmd in");
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		printf("\t%s) subs='", families[i].name);
		for (const char *const *s = families[i].subs; *s; s++)
			printf("%s%s", s == families[i].subs ? "" : " ", *s);
		puts("' ;;");
	}
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
	     "\t\tsubs='" SAY_STATES "'\n\tfi\n"
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

/* Within single quotes; brackets and colons mean something in specs. */
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
	return strcmp(o->arg, "FILE") == 0	? "_files"
	       : strcmp(o->arg, "SESSION") == 0 ? "_lodge_sessions"
	       : strcmp(o->arg, "STATE") == 0	? "(" SAY_STATES ")"
	       : o->set == ask_template		? "_lodge_templates"
						: " ";
}

static void zsh_option(const struct cli_option *o)
{
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
}

static void zsh_form(const char *name, const char *sub, const struct cli_option_command *cmd)
{
	printf("\t'%s%s%s') _arguments -S '--help[show this]'", name, sub ? " " : "",
	       sub ? sub : "");
	for (const struct cli_option *o = cmd->opts; o->name; o++)
		zsh_option(o);
	printf(" '*:operand:%s' ;;\n", strcmp(name, "cp") == 0	   ? "_lodge_places"
				       : wants_session(cmd)	   ? "_lodge_sessions"
				       : wants_template(name, sub) ? "_lodge_templates"
								   : "_files");
}

static void print_zsh(void)
{
	struct writer w = { .form = zsh_form };
	const char *name, *summary;

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
	for (unsigned i = 0; (name = cmd_name(i, &summary)); i++) {
		printf("\t\t\t'%s:", name);
		zsh_text(summary);
		puts("'");
	}
	puts("\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase $form in");
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		printf("\t%s) subs=(", families[i].name);
		for (const char *const *s = families[i].subs; *s; s++)
			printf("%s%s", s == families[i].subs ? "" : " ", *s);
		puts(") ;;");
	}
	puts("\tesac\n"
	     "\tif ((CURRENT == 3 && $#subs)); then compadd -a subs; fi\n"
	     "\tif ((CURRENT > 3 && $subs[(Ie)$words[3]])); then\n"
	     "\t\tform+=\" $words[3]\"\n\t\tshift words\n\t\t((CURRENT--))\n\tfi\n"
	     "\tshift words\n\t((CURRENT--))\n\tcase $form in");
	each_form(&w);
	puts("\tesac\n}\n\n_lodge \"$@\"");
}

/* ---- the command ----------------------------------------------------------------------------- */

int cmd_completion(int argc, char **argv)
{
	static const struct cli_option options[] = { { NULL } };
	static const struct cli_option_command command = {
		.name = "lodge completion",
		.usage = "bash|zsh",
		.summary = "Prints a completion of lodge for a shell.",
		.opts = options,
		.more = "source <(lodge completion bash)\n",
	};
	struct err err = { 0 };
	int first, r = cli_option_parse(&command, argc, argv, NULL, &first, &err);

	if (r)
		return r < 0 ? cli_option_fail(CLI_EXIT_USAGE, &err) : 0;
	if (first + 1 == argc && strcmp(argv[first], "bash") == 0) {
		print_bash();
	} else if (first + 1 == argc && strcmp(argv[first], "zsh") == 0) {
		print_zsh();
	} else {
		err_set(&err, ERR_INVALID, "completion: give bash or zsh");
		return cli_option_fail(CLI_EXIT_USAGE, &err);
	}
	return 0;
}
