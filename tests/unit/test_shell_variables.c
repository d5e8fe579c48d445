/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and options that make a shell start programs not named in the text. */
#include "shell/shell_variables.h"
#include "shell_finds.h"

static void settings_are_reported(void)
{
	static const struct example cases[] = {
		{ "BASH_CMDS[ls]=/x; ls", "!BASH_CMDS ls" },
		{ "BASH_CMDS=([ls]=/x)", "!BASH_CMDS" },
		{ "A=1 PS4+='$(x)' ls", "!PS4 ls" },
		{ "LD_PRELOAD=/x ls", "!LD_PRELOAD ls" },
		{ "LD_=1 PS5=1 XPS4=1 IFS=: PATH=/x ls", "ls" },
		{ "export A=1 ENV=f", ":export !ENV" },
		{ "export PS1", ":export" },
		{ "declare -x 'BASH_ENV=f' B=$x", ":declare !BASH_ENV" },
		{ "declare -x \"PS4=$x\"", ":declare !PS4" },
		{ "declare -n a=PS4", ":declare !-n" },
		{ "declare -f \"$x\"", ":declare" },
		{ "f() { local -r a=$1 b=\"$2\" 'c'=3; }", ":local" },
		{ "f() { local PS0=a; }", ":local !PS0" },
		{ "export \"$x=1\"", ":export ?\"$x=1\"" },
		{ "export $(xyz)", ":export ?$(xyz) xyz" },
		{ "readonly a=\"$x\" c", ":readonly" },
		{ "read -r PS4", ":read !PS4" },
		{ "read -p \"$x\" -t $t a b", ":read" },
		{ "read -a 'BASH_CMDS[ls]'", ":read !BASH_CMDS" },
		{ "read -raPS4", ":read !PS4" },
		{ "read \"$x\"", ":read ?\"$x\"" },
		{ "mapfile -t -C a PS4", ":mapfile a !PS4" },
		{ "printf -v PS4 a", ":printf !PS4" },
		{ "printf -vPS4 a", ":printf !PS4" },
		{ "printf -v \"$x\" a", ":printf ?\"$x\"" },
		{ "printf '%s' PS4=1 \"$x\"", ":printf" },
		{ "env PS4=x BASH_FUNC_ls%%='() { a; }' ls", "env !PS4 !BASH_FUNC_ls ls" },
		{ "env \"A=$x\" ls", "env ls" },
		{ "for PS4 in a; do :; done", "!PS4 ::" },
		{ ": ${PS4:=a} ${PS4=a} ${PS4:-a} ${PS4}", ":: !PS4 !PS4" },
		{ ": ${!x:=a} ${!x}", ":: ?!x" },
		{ "echo ${x@P} ${x@Q} ${x[@]} \"${x[@]@P}\"", ":echo !@P !@P" },
		{ "hash -p /x ls", ":hash !-p" },
		{ "hash -r; hash ls; hash -- $x", ":hash :hash :hash" },
		{ "hash $x", ":hash ?$x" },
		{ "set -eH; set -o histexpand; shopt -so histexpand",
		  ":set !-eH :set !histexpand :shopt !histexpand" },
		{ "set -euo pipefail; set +H; set -- -H", ":set :set :set" },
		{ "fc -s; enable -f /x a; bind -x a", "?fc ?enable ?bind" },
	};

	CHECK_ALL(cases);
}

static void dangerous_environment_variables_are_known(void)
{
	CHECK(shell_is_setting("PS4", 3) && shell_is_setting("LD_AUDIT=x", 8));
	CHECK(shell_is_setting("BASH_FUNC_ls%%", 14));
	CHECK(!shell_is_setting("LD_", 3) && !shell_is_setting("PS", 2));
	CHECK(!shell_is_setting("PATH", 4) && !shell_is_setting("", 0));
}

int main(void)
{
	RUN(settings_are_reported);
	RUN(dangerous_environment_variables_are_known);
	return tap_done();
}
