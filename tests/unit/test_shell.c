/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/shell.h"

#include <errno.h>

#include "base/array.h"
#include "shell_finds.h"

/* ---- programs found in a text ---------------------------------------------------------------- */

static void commands_begin_after_operators(void)
{
	static const struct example cases[] = {
		{ "", "" },
		{ "ls", "ls" },
		{ "  \t\n\n ls  ", "ls" },
		{ "ls -la /tmp", "ls" },
		{ "echo hi;xyz", ":echo xyz" },
		{ "echo a|xyz", ":echo xyz" },
		{ "echo a |& xyz", ":echo xyz" },
		{ "a & xyz", "a xyz" },
		{ "a && xyz", "a xyz" },
		{ "a || xyz", "a xyz" },
		{ "a\nxyz", "a xyz" },
		{ "a &&\n\nxyz", "a xyz" },
		{ "a;b;c|d&e", "a b c d e" },
		{ "ls \\\n -l", "ls" },
		{ "a &\\\n& xyz", "a xyz" },
		{ "ls # xyz", "ls" },
		{ "# xyz\nls", "ls" },
		{ "ls#xyz", "ls#xyz" },
		{ "ls;#xyz\nb", "ls b" },
		{ "!  ls", "ls" },
		{ "! xyz | b", "xyz b" },
		{ "time ls", "ls" },
		{ "time -p -- xyz", "xyz" },
		{ "l\\\ns", "ls" },
	};

	CHECK_ALL(cases);
}

static void quotes_make_words(void)
{
	static const struct example cases[] = {
		{ "echo 'look at this'", ":echo" },
		{ "echo \"it's\"", ":echo" },
		{ "echo '|' xyz", ":echo" },
		{ "echo \"a;xyz\" ';xyz' \\;xyz", ":echo" },
		{ "'ls'", "ls" },
		{ "\"l\"'s'", "ls" },
		{ "l\\s", "ls" },
		{ "$'\\x78yz'", "xyz" },
		{ "$'\\170\\u0079\\U0000007a'", "xyz" },
		{ "$'ls\\0 hidden'", "ls" },
		{ "$'it\\'s' b", "it's" },
		{ "$\"ls\"", "ls" },
		{ "'' b", "" },
		{ "\"a b\" c", "a b" },
		{ "'if' x", "if" },
		{ "\\if x", "if" },
		{ "echo \"\\$(xyz)\" '$(xyz)' \\$\\(xyz\\)", ":echo" },
		{ "echo \"\\`xyz\\`\"", ":echo" },
		{ "echo a\\\n;xyz", ":echo xyz" },
		{ "echo \xc3\xa9 '\xff'; \xc3\xa9", ":echo \xc3\xa9" },
		{ "echo \\", ":echo" },
	};

	CHECK_ALL(cases);
}

static void substitutions_are_parsed(void)
{
	static const struct example cases[] = {
		{ "echo $(xyz)", ":echo xyz" },
		{ "echo `xyz`", ":echo xyz" },
		{ "echo \"$(xyz)\"", ":echo xyz" },
		{ "echo \"a `xyz` b\"", ":echo xyz" },
		{ "echo \"$(echo \"$(xyz)\")\"", ":echo :echo xyz" },
		{ "echo `echo \\`xyz\\``", ":echo :echo xyz" },
		{ "echo $(echo ')' ; xyz)", ":echo :echo xyz" },
		{ "echo $(# )\nxyz)", ":echo xyz" },
		{ "echo $(case a in a) xyz;; esac)", ":echo xyz" },
		{ "echo ${x:-$(xyz)}", ":echo xyz" },
		{ "echo \"${x:-`xyz`}\"", ":echo xyz" },
		{ "echo \"${x:-'$(xyz)'}\"", ":echo xyz" },
		{ "echo ${x:-'$(xyz)'}", ":echo" },
		{ "echo ${x:-<(xyz)}", ":echo xyz" },
		{ "echo ${#x} ${x#'}'} ${x%\"}\"}", ":echo" },
		{ "echo ${x//a/${y:-$(xyz)}}", ":echo xyz" },
		{ "echo ${ xyz; }", ":echo xyz" },
		{ "echo $((1 + $(xyz)))", ":echo xyz" },
		{ "echo $((1 + (2 << 3)))", ":echo" },
		{ "echo $((xyz); b)", ":echo xyz b" },
		{ "echo $[1 + $(xyz)]", ":echo xyz" },
		{ "echo $\\\n(xyz)", ":echo xyz" },
		{ "diff <(a) <(xyz)", "diff a xyz" },
		{ "a > >(xyz)", "a xyz" },
		{ "a x<(xyz)y", "a xyz" },
		{ "x=$(xyz)", "xyz" },
		{ "x=$(xyz) ls", "xyz ls" },
		{ "x=(a b $(xyz) # c )\n d); ls", "xyz ls" },
		{ "x[$(xyz)]=1", "xyz" },
		{ "x[1 + 2]=3 ls", "ls" },
		{ "x+=(a); ls", "ls" },
		{ "a > $(xyz)", "a xyz" },
		{ "echo $", ":echo" },
		{ "echo a$ \"$\" $;xyz", ":echo xyz" },
		{ "echo $x${y}$1$@$*$#$?$$$!$-", ":echo" },
	};

	CHECK_ALL(cases);
}

static void compound_commands_hold_commands(void)
{
	static const struct example cases[] = {
		{ "(ls)", "ls" },
		{ "( ls; (xyz) )", "ls xyz" },
		{ "((ls); xyz)", "ls xyz" },
		{ "{ ls; xyz; }", "ls xyz" },
		{ "{ ls; } > f; xyz", "ls xyz" },
		{ "{ls; b", "{ls b" },
		{ "if a; then b; elif c; then d; else e; fi; f", "a b c d e f" },
		{ "if (a) then b; fi", "a b" },
		{ "while a; do b; done < f | c", "a b c" },
		{ "until a; do b; done", "a b" },
		{ "for i in xyz abc; do ls; done", "ls" },
		{ "for i in $(xyz); do ls; done", "xyz ls" },
		{ "for i; do ls; done", "ls" },
		{ "for i\nin a b\ndo ls\ndone", "ls" },
		{ "for ((i = 0; i < 3; i++)); do ls; done", "ls" },
		{ "for ((;;)) { ls; }", "ls" },
		{ "for i in a; { ls; }", "ls" },
		{ "for in in in; do ls; done", "ls" },
		{ "select x in a b; do ls; done", "ls" },
		{ "case $x in a) ls;; b|c) xyz;; esac", "ls xyz" },
		{ "case $x in (a) ls ;& (b) xyz ;;& *) c; esac; d", "ls xyz c d" },
		{ "case $x in esac; ls", "ls" },
		{ "case $(xyz) in $(a)) b;; esac", "xyz a b" },
		{ "case x in\n  # c\n  x)\n    ls\n    ;;\nesac", "ls" },
		{ "case x in *.@(a|b)) ls;; esac", "ls" },
		{ "case x in if) ls;; esac", "ls" },
		{ "[[ a == b && -f $(xyz) ]] && ls", "xyz ls" },
		{ "[[ $x =~ ^(a|b)$ ]]; ls", "ls" },
		{ "[[ a < b || ( a > c ) ]]; ls", "ls" },
		{ "((x = 1 + $(xyz))); ls", "xyz ls" },
		{ "((x > 1)) && ls", "ls" },
		{ "[ -f x ] && ls", ":[ ls" },
		{ "test -f x; ls", ":test ls" },
		{ "coproc ls", "ls" },
		{ "coproc NAME { ls; }", "ls" },
		{ "coproc NAME (ls)", "ls" },
		{ "!(ls)", "ls" },
		{ "X=1 if", "if" },
		{ ">f while", "while" },
		{ "echo if then fi done", ":echo" },
	};

	CHECK_ALL(cases);
}

static void prefixes_are_not_programs(void)
{
	static const struct example cases[] = {
		{ "X=1 ls", "ls" },
		{ "X=1 Y='a b' ls", "ls" },
		{ "X=1", "" },
		{ "X=1; ls", "ls" },
		{ "X= ls", "ls" },
		{ "2>&1 ls", "ls" },
		{ "ls 2>&1 >f", "ls" },
		{ ">f ls", "ls" },
		{ "<f X=1 ls", "ls" },
		{ "ls &> f; xyz", "ls xyz" },
		{ "ls &>> f & xyz", "ls xyz" },
		{ "ls {fd}>f", "ls" },
		{ "ls >| f >& g <> h", "ls" },
		{ "ls >&- 2>&1|xyz", "ls xyz" },
		{ "cat <<< xyz", "cat" },
		{ "cat <<< $(xyz)", "cat xyz" },
		{ "1x=2 a", "1x=2" },
		{ "\"X\"=1 a", "X=1" },
		{ "x-y=1 a", "x-y=1" },
	};

	CHECK_ALL(cases);
}

static void here_documents_are_not_commands(void)
{
	static const struct example cases[] = {
		{ "cat <<E\nxyz\nE\nls", "cat ls" },
		{ "cat <<E\n$(xyz)\nE", "cat xyz" },
		{ "cat <<E\n`xyz` ${a:-$(b)}\nE", "cat xyz b" },
		{ "cat <<'E'\n$(xyz)\nE\nls", "cat ls" },
		{ "cat <<\\E\n$(xyz)\nE\nls", "cat ls" },
		{ "cat <<\"E\"; ls\n$(xyz)\nE\nb", "cat ls b" },
		{ "cat <<-E\n\txyz\n\tE\nls", "cat ls" },
		{ "cat <<E\n\tE\nE\nls", "cat ls" },
		{ "cat <<A <<B\na\nA\n$(xyz)\nB\nls", "cat xyz ls" },
		{ "cat <<E | xyz\na\nE", "cat xyz" },
		{ "cat <<E\nit's \"\nE\nls", "cat ls" },
		{ "cat <<E\na\\\nE\nxyz\nE\nls", "cat ls" },
		{ "cat <<E\n\\$(xyz)\nE\nls", "cat ls" },
		{ "echo $(cat <<E\n)\nE\n)", ":echo cat" },
		{ "(cat <<E\nxyz\nE\n)", "cat" },
		{ "if cat <<E; then\nxyz\nE\nls; fi", "cat ls" },
		{ "cat <<E\nno end", "cat ?E" },
		{ "cat <<E", "cat ?E" },
		{ "echo $(cat <<E)\nls\nE", ":echo cat ?E ls E" },
		{ "cat <<$'E'\nE\nxyz", "cat xyz" },
		{ "cat <<$'\\x45'\nE\nxyz", "cat xyz" },
		{ "cat <<$\"E\"\nE\nxyz", "cat xyz" },
		{ "cat <<'a\\b'\na\\b\nxyz", "cat xyz" },
		{ "cat <<\"a\\b\"\na\\b\nxyz", "cat xyz" },
		{ "cat <<a\\b\nab\nxyz", "cat xyz" },
		{ "cat <<'a\nb'\nab\nxyz", "cat ?'a\nb'" },
		{ "cat <<E\n\\\nE\nxyz", "cat xyz" },
		{ "cat <<E\nE\\\n\nxyz", "cat xyz" },
		{ "cat <<'E'\na\\\nE\nxyz", "cat xyz" },
		{ "cat <<-E\n\t\\\nE\nxyz", "cat xyz" },
		{ "cat << E\nxyz\nE", "cat" },
		{ "cat <<$(x)\na\n$(x)\nls", "cat ?$(x) x" },
	};

	CHECK_ALL(cases);
}

static void functions_are_not_programs(void)
{
	static const struct example cases[] = {
		{ "f() { ls; }; f", "ls f()" },
		{ "function f { xyz; }; f", "xyz f()" },
		{ "function f() (xyz)\nf a", "xyz f()" },
		{ "f () if a; then b; fi; f", "a b f()" },
		{ "f()\n{\n  xyz\n} > log\nf", "xyz f()" },
		{ "f; f() { ls; }", "f ls" },
		{ "a() { b; }; b() { ls; }; a", "b() ls a()" },
		{ "f() { f; }; f", "f() f()" },
		{ "f() { ls; }; command f; env f", "ls :command f env f" },
		{ "f() { ls; }; /f; /bin/f; exec f", "ls /f f :exec f" },
		{ "echo() { ls; }; echo; builtin echo", "ls echo() :builtin :echo" },
		{ "f() { ls; }; unset -f f; f", "ls :unset f" },
		{ "(f() { ls; }; f); f", "ls f f" },
		{ "a $(f() { ls; }) `g() { b; }`; f; g", "a ls b f g" },
		{ "f() { ls; } | a; f", "ls a f" },
		{ "a | f() { ls; }; f", "a ls f" },
		{ "f() { ls; } & f", "ls f" },
		{ "a | b; f() { ls; } && f", "a b ls f()" },
		{ "f() { ls; }; (f); a $(f)", "ls f() a f()" },
		{ "false && f() { ls; }; f", ":false ls f" },
		{ "a || b && f() { ls; }; f", "a b ls f" },
		{ "a && b; f() { ls; }; f", "a b ls f()" },
		{ "a &&\nf() { ls; }\nf", "a ls f" },
		{ "if a; then f() { ls; }; fi; f", "a ls f" },
		{ "while a; do f() { ls; }; done; f", "a ls f" },
		{ "case a in b) f() { ls; };; esac; f", "ls f" },
		{ "{ f() { ls; }; } > /a/b; f", "ls f" },
		{ "if a; then b; fi; f() { ls; }; f", "a b ls f()" },
		{ "g() { f() { ls; }; }; f", "ls f" },
		{ "g() { f; }; g; f() { ls; }", "f g() ls" },
		{ "f() { ls; }; bash -c f", "ls bash f" },
		{ "f() { ls; }; env bash -c 'eval f'", "ls env bash :eval f" },
		{ "bash -c 'f() { ls; }'; f", "bash ls f" },
		{ "f() { ls; }; unset -f $x; f", "ls :unset f" },
		{ "f() { ls; }; unset -f {f,g}; f", "ls :unset f" },
		{ "trap 'f() { ls; }' EXIT; f", ":trap ls f" },
		{ "coproc { f() { ls; }; }; f", "ls f" },
		{ "'f'() { ls; }; f", "ls f" },
		{ "f() { ls; }; eval f", "ls :eval f()" },
	};

	CHECK_ALL(cases);
}

static void programs_started_by_others_are_found(void)
{
	static const struct example cases[] = {
		{ "bash -c 'xyz'", "bash xyz" },
		{ "bash -lc \"xyz\"", "bash xyz" },
		{ "sh -e -c xyz name", "sh xyz" },
		{ "bash --norc -o pipefail -c 'a | xyz'", "bash a xyz" },
		{ "bash -c 'bash -c \"bash -c xyz\"'", "bash bash bash xyz" },
		{ "bash script.sh -c xyz", "bash" },
		{ "bash", "bash" },
		{ "bash -c", "bash" },
		{ "bash -c \"$x\"", "bash ?\"$x\"" },
		{ "bash -c \"ls $x\"", "bash ?\"ls $x\"" },
		{ "/bin/sh -c xyz", "sh xyz" },
		{ "env xyz", "env xyz" },
		{ "env", "env" },
		{ "env -i -u A X=1 xyz", "env xyz" },
		{ "env -uA --chdir /tmp X=1 xyz", "env xyz" },
		{ "env -S 'xyz a'", "env xyz" },
		{ "env - xyz", "env xyz" },
		{ "env $x", "env ?$x" },
		{ "env X=\"$x\" ls", "env ls" },
		{ "env X=$x ls", "env ?X=$x" },
		{ "env echo", "env echo" },
		{ "xargs xyz", "xargs xyz" },
		{ "ls | xargs -n 1 -0 xyz", "ls xargs xyz" },
		{ "xargs -I{} xyz {}", "xargs xyz" },
		{ "xargs -I % % a", "xargs ?%" },
		{ "xargs", "xargs echo" },
		{ "xargs env", "xargs ?... env" },
		{ "xargs bash -c", "xargs ?... bash" },
		{ "xargs -I{} sh -c 'ls {}'", "xargs sh ?'ls {}'" },
		{ "nohup xyz &", "nohup xyz" },
		{ "nice -n 5 xyz", "nice xyz" },
		{ "nice -5 xyz", "nice xyz" },
		{ "timeout 5 xyz", "timeout xyz" },
		{ "timeout -s KILL -k 1 5s xyz", "timeout xyz" },
		{ "timeout --signal=KILL 5s xyz", "timeout xyz" },
		{ "timeout $t xyz", "timeout ?$t" },
		{ "timeout \"$t\" xyz", "timeout xyz" },
		{ "sudo -u root X=1 xyz", "sudo xyz" },
		{ "stdbuf -oL xyz", "stdbuf xyz" },
		{ "setsid xyz", "setsid xyz" },
		{ "/usr/bin/time -f %e xyz", "time xyz" },
		{ "watch -n 1 'ls | xyz'", "watch ls xyz" },
		{ "flock f xyz", "flock xyz" },
		{ "flock f -c xyz", "flock -c" },
		{ "flock -c xyz f", "flock xyz" },
		{ "su root -c 'a; xyz'", "su a xyz" },
		{ "su --command=xyz", "su xyz" },
		{ "env nice nohup timeout 1 xyz", "env nice nohup timeout xyz" },
		{ "find . -exec xyz {} \\;", "find xyz" },
		{ "find . -execdir a {} + -ok xyz ';'", "find a xyz" },
		{ "find . -exec sh -c 'xyz \"$1\"' _ {} \\;", "find sh xyz" },
		{ "find . -exec {} \\;", "find ?{}" },
		{ "find . -name '*.c'", "find" },
		{ "find . -exec bash -c 'echo a b c d e f g h' \\; -exec xyz \\;",
		  "find bash :echo xyz" },
		{ "find . -exec xargs ls \\; -exec xyz \\;", "find xargs ls xyz" },
		{ "find . -exec env -u + xyz {} +", "find env xyz" },
		{ "ssh host xyz", "ssh" },
	};

	CHECK_ALL(cases);
}

static void options_are_parsed_like_the_programs_do(void)
{
	static const struct example cases[] = {
		{ "env --split-string='xyz a'", "env xyz" },
		{ "env --split-string 'xyz a'", "env xyz" },
		{ "env --split='xyz a'", "env ?--split='xyz a'" },
		{ "env --uns ls xyz", "env ?--uns ls" },
		{ "env --unset ls xyz", "env xyz" },
		{ "env --unset=A --ignore-environment xyz", "env xyz" },
		{ "env -a ls xyz", "env xyz" },
		{ "timeout --foreground --sig ls 5 xyz", "timeout ?--sig 5" },
		{ "xargs --replace xyz", "xargs xyz" },
		{ "su --comm xyz", "su ?--comm" },
		{ "su --session-command=xyz", "su ?--session-command=xyz" },
		{ "bash +c xyz", "bash xyz" },
		{ "bash -oc pipefail xyz", "bash xyz" },
		{ "bash -rcfile ls -c xyz", "bash xyz" },
		{ "bash -init-file ls -c xyz", "bash xyz" },
	};

	CHECK_ALL(cases);
}

static void programs_started_by_builtins_are_found(void)
{
	static const struct example cases[] = {
		{ "cd /; export A=1; read x; set -e", ":cd :export :read :set" },
		{ "eval xyz", ":eval xyz" },
		{ "eval 'a; xyz'", ":eval a xyz" },
		{ "eval a ';' xyz", ":eval a xyz" },
		{ "eval \"$x\"", ":eval ?\"$x\"" },
		{ "eval eval eval xyz", ":eval :eval :eval xyz" },
		{ "exec xyz", ":exec xyz" },
		{ "exec -a name xyz", ":exec xyz" },
		{ "exec 3>f", ":exec" },
		{ "exec echo", ":exec echo" },
		{ "command xyz", ":command xyz" },
		{ "command -p xyz", ":command xyz" },
		{ "command -v xyz", ":command" },
		{ "command - xyz", ":command -" },
		{ "exec -", ":exec -" },
		{ "nohup - xyz", "nohup -" },
		{ "command echo", ":command :echo" },
		{ "builtin eval xyz", ":builtin :eval xyz" },
		{ "trap 'xyz' EXIT", ":trap xyz" },
		{ "trap - EXIT", ":trap" },
		{ "trap EXIT", ":trap" },
		{ "trap \"$x\" EXIT", ":trap ?\"$x\"" },
		{ "source f", "?source" },
		{ ". ./f", "?." },
		{ "alias ll='xyz -l'", ":alias xyz" },
		{ "mapfile -C xyz a", ":mapfile xyz" },
		{ "mapfile -Cxyz a", ":mapfile xyz" },
		{ "mapfile -tCxyz a", ":mapfile xyz" },
		{ "mapfile -t a", ":mapfile" },
		{ "compgen -Cxyz a", ":compgen xyz" },
		{ "compgen -W'$(xyz)'", ":compgen ?compgen" },
		{ "compgen $x a", ":compgen ?$x" },
		{ "let 'a[$(xyz)]=1'", ":let xyz" },
		{ "unset 'a[`xyz`]'", ":unset xyz" },
		{ "printf -v 'a[$(xyz)]' b", ":printf xyz" },
		{ "printf 'a[$(xyz)]'", ":printf" },
		{ "echo 'a[$(xyz)]'", ":echo" },
		{ "declare -a x=($(xyz))", ":declare xyz" },
	};

	CHECK_ALL(cases);
}

static void words_with_unknown_values_are_unknown(void)
{
	static const struct example cases[] = {
		{ "$X", "?$X" },
		{ "$X a", "?$X" },
		{ "\"$@\"", "?\"$@\"" },
		{ "$(xyz) a", "?$(xyz) xyz" },
		{ "`xyz`", "?`xyz` xyz" },
		{ "l$x", "?l$x" },
		{ "l?", "?l?" },
		{ "/bin/l*", "?/bin/l*" },
		{ "{ls,-l}", "?{ls,-l}" },
		{ "a{1..3}", "?a{1..3}" },
		{ "~/bin/ls", "?~/bin/ls" },
		{ "<(a)", "?<(a) a" },
		{ "ls $X *", "ls" },
	};

	CHECK_ALL(cases);
}

static void paths_are_names_in_standard_places_only(void)
{
	static const struct example cases[] = {
		{ "/bin/ls", "ls" },
		{ "/usr/bin/ls", "ls" },
		{ "/usr/local/sbin/ls", "ls" },
		{ "./ls", "./ls" },
		{ "bin/ls", "bin/ls" },
		{ "/tmp/ls", "/tmp/ls" },
		{ "/bin/../tmp/ls", "/bin/../tmp/ls" },
		{ "/bin/", "/bin/" },
		{ "/ls", "/ls" },
		{ "/bin/echo", "echo" },
		{ "/usr/bin/env /bin/xyz", "env xyz" },
		{ "/bin/a/b", "/bin/a/b" },
	};

	CHECK_ALL(cases);
}

/* ---- positions ------------------------------------------------------------------------------- */

static void words_have_positions(void)
{
	static const char text[] = "ls\n  a | bash -c 'x\n y'\n";
	static const struct {
		const char *name;
		size_t offset;
		unsigned line, column;
	} want[] = { { "ls", 0, 1, 1 },
		     { "a", 5, 2, 3 },
		     { "bash", 9, 2, 7 },
		     { "x", 18, 2, 16 },
		     { "y", 21, 3, 2 } };
	struct shell_words w = { 0 };
	struct err err;

	CHECK(shell_parse(text, strlen(text), &w, &err) == 0);
	CHECK(w.count == ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CHECK_STR(w.items[i].name, want[i].name);
		CHECK(w.items[i].offset == want[i].offset);
		CHECK(w.items[i].line == want[i].line && w.items[i].column == want[i].column);
	}
	shell_words_fini(&w);
}

static void unbalanced_text_is_an_error_with_its_position(void)
{
	static const struct example cases[] = {
		{ "echo 'a", "command: unclosed ' at line 1, column 6" },
		{ "ls\necho \"a", "command: unclosed \" at line 2, column 6" },
		{ "echo $'a", "command: unclosed $' at line 1, column 7" },
		{ "echo `a", "command: unclosed ` at line 1, column 6" },
		{ "echo $(a", "command: unclosed ( at line 1, column 6" },
		{ "echo ${a", "command: unclosed ${ at line 1, column 6" },
		{ "echo \"$(a\"", "command: unclosed \" at line 1, column 10" },
		{ "(ls", "command: unclosed ( at line 1, column 1" },
		{ "((ls)", "command: unclosed ( at line 1, column 1" },
		{ "{ ls", "command: unclosed { at line 1, column 1" },
		{ "ls )", "command: unexpected ) at line 1, column 4" },
		{ "if a; then b", "command: if without fi at line 1, column 1" },
		{ "for i in a; do b", "command: loop without done at line 1, column 1" },
		{ "while a; do b; fi", "command: unexpected closing word at line 1, column 16" },
		{ "case a in a) b;;", "command: case without esac at line 1, column 1" },
		{ "case a", "command: case without in at line 1, column 1" },
		{ "[[ a", "command: [[ without ]] at line 1, column 1" },
		{ "a b (c)", "command: unexpected ( at line 1, column 5" },
		{ "bash -c 'echo \"'", "command: unclosed \" at line 1, column 15" },
		{ "cat <<", "command: << without a delimiter at line 1, column 6" },
		{ "a=(b", "command: unclosed ( at line 1, column 3" },
		{ "cat <<E\n$(\nE\n", "command: unclosed ( at line 2, column 1" },
	};

	CHECK_ALL(cases);
}

static void sizes_are_bounded(void)
{
	static char text[SHELL_TEXT_MAX + 2];
	struct shell_words w = { 0 };
	struct err err = { 0 };

	memset(text, '(', 1000);
	CHECK(shell_parse(text, 1000, &w, &err) < 0 && err.code == ERR_INVALID);
	for (size_t i = 0; i < sizeof(text) - 2; i += 2)
		memcpy(text + i, "${", 2);
	CHECK(shell_parse(text, sizeof(text) - 2, &w, &err) < 0 && err.code == ERR_INVALID);
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "$((", 3);
	CHECK(shell_parse(text, 120000, &w, &err) < 0 && err.code == ERR_INVALID);
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "a[;", 3);
	CHECK(shell_parse(text, 120000, &w, &err) < 0);
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "a;", 2);
	CHECK(shell_parse(text, SHELL_WORDS_MAX * 2, &w, &err) == 0 && w.count == SHELL_WORDS_MAX);
	shell_words_fini(&w);
	CHECK(shell_parse(text, SHELL_WORDS_MAX * 2 + 1, &w, &err) < 0 && err.sys == E2BIG);
	memset(text, 'x', sizeof(text));
	CHECK(shell_parse(text, SHELL_TEXT_MAX, &w, &err) == 0 && w.count == 1);
	shell_words_fini(&w);
	CHECK(shell_parse(text, SHELL_TEXT_MAX + 1, &w, &err) < 0 && err.code == ERR_LIMIT &&
	      err.sys == E2BIG);
	CHECK(shell_parse("a\0b", 3, &w, &err) < 0 && err.code == ERR_INVALID);
}

static void argv_is_checked_without_a_shell(void)
{
	static const struct {
		const char *argv[6], *want;
	} cases[] = {
		{ { "ls", "-l" }, "ls" },
		{ { "/bin/ls" }, "ls" },
		{ { "echo", "$(xyz)" }, "echo" },
		{ { "bash", "-c", "xyz a; b" }, "bash xyz b" },
		{ { "env", "X=1", "xyz" }, "env xyz" },
		{ { "if" }, "if" },
		{ { "eval", "xyz" }, "eval" },
		{ { "X=1" }, "X=1" },
		{ { "a b" }, "a b" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct shell_words w = { 0 };
		struct err err;
		char got[256];

		CHECK(shell_parse_argv(cases[i].argv, &w, &err) == 0);
		describe(&w, got, sizeof(got));
		shell_words_fini(&w);
		CHECK_STR(got, cases[i].want);
	}
}

int main(void)
{
	RUN(commands_begin_after_operators);
	RUN(quotes_make_words);
	RUN(substitutions_are_parsed);
	RUN(compound_commands_hold_commands);
	RUN(prefixes_are_not_programs);
	RUN(here_documents_are_not_commands);
	RUN(functions_are_not_programs);
	RUN(programs_started_by_others_are_found);
	RUN(options_are_parsed_like_the_programs_do);
	RUN(programs_started_by_builtins_are_found);
	RUN(words_with_unknown_values_are_unknown);
	RUN(paths_are_names_in_standard_places_only);
	RUN(words_have_positions);
	RUN(unbalanced_text_is_an_error_with_its_position);
	RUN(sizes_are_bounded);
	RUN(argv_is_checked_without_a_shell);
	return tap_done();
}
