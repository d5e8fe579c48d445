/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/shell_tables.h"

#include <string.h>

#include "base/array.h"

const char *const shell_path[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
				   "/sbin",	      "/bin",		NULL };

static const struct {
	const char *name;
	enum builtin_kind kind;
} builtins[] = {
	{ ".", BUILTIN_SOURCE },	  { ":", BUILTIN_PLAIN },
	{ "[", BUILTIN_PLAIN },		  { "alias", BUILTIN_ALIAS },
	{ "bg", BUILTIN_PLAIN },	  { "bind", BUILTIN_SOURCE },
	{ "break", BUILTIN_PLAIN },	  { "builtin", BUILTIN_BUILTIN },
	{ "caller", BUILTIN_PLAIN },	  { "cd", BUILTIN_PLAIN },
	{ "command", BUILTIN_COMMAND },	  { "compgen", BUILTIN_CALLBACK },
	{ "complete", BUILTIN_CALLBACK }, { "compopt", BUILTIN_PLAIN },
	{ "continue", BUILTIN_PLAIN },	  { "declare", BUILTIN_DECLARE },
	{ "dirs", BUILTIN_PLAIN },	  { "disown", BUILTIN_PLAIN },
	{ "echo", BUILTIN_PLAIN },	  { "enable", BUILTIN_SOURCE },
	{ "eval", BUILTIN_EVAL },	  { "exec", BUILTIN_EXEC },
	{ "exit", BUILTIN_PLAIN },	  { "export", BUILTIN_EXPORT },
	{ "false", BUILTIN_PLAIN },	  { "fc", BUILTIN_SOURCE },
	{ "fg", BUILTIN_PLAIN },	  { "getopts", BUILTIN_NAMES },
	{ "hash", BUILTIN_HASH },	  { "help", BUILTIN_PLAIN },
	{ "history", BUILTIN_PLAIN },	  { "jobs", BUILTIN_PLAIN },
	{ "kill", BUILTIN_PLAIN },	  { "let", BUILTIN_NAMES },
	{ "local", BUILTIN_DECLARE },	  { "logout", BUILTIN_PLAIN },
	{ "mapfile", BUILTIN_MAPFILE },	  { "popd", BUILTIN_PLAIN },
	{ "printf", BUILTIN_PRINTF },	  { "pushd", BUILTIN_PLAIN },
	{ "pwd", BUILTIN_PLAIN },	  { "read", BUILTIN_READ },
	{ "readarray", BUILTIN_MAPFILE }, { "readonly", BUILTIN_EXPORT },
	{ "return", BUILTIN_PLAIN },	  { "set", BUILTIN_SET },
	{ "shift", BUILTIN_PLAIN },	  { "shopt", BUILTIN_SET },
	{ "source", BUILTIN_SOURCE },	  { "suspend", BUILTIN_PLAIN },
	{ "test", BUILTIN_PLAIN },	  { "times", BUILTIN_PLAIN },
	{ "trap", BUILTIN_TRAP },	  { "true", BUILTIN_PLAIN },
	{ "type", BUILTIN_PLAIN },	  { "typeset", BUILTIN_DECLARE },
	{ "ulimit", BUILTIN_PLAIN },	  { "umask", BUILTIN_PLAIN },
	{ "unalias", BUILTIN_PLAIN },	  { "unset", BUILTIN_NAMES },
	{ "wait", BUILTIN_PLAIN },
};

static const struct starter starters[] = {
	{ .name = "ash", .kind = STARTER_SHELL },
	{ .name = "bash", .kind = STARTER_SHELL, .words = " rcfile init-file " },
	{ .name = "busybox", .kind = STARTER_COMMAND },
	{ .name = "chroot",
	  .words = " groups userspec ",
	  .flags = " skip-chdir help version ",
	  .operands = 1 },
	{ .name = "chrt", .letters = "TPDp", .operands = 1 },
	{ .name = "dash", .kind = STARTER_SHELL },
	{ .name = "doas", .letters = "uCa" },
	{ .name = "env",
	  .letters = "uCa",
	  .words = " unset chdir argv0 ",
	  .flags = " ignore-environment null debug block-signal default-signal ignore-signal "
		   "list-signal-handling help version ",
	  .assigns = true,
	  .text = 'S',
	  .text_word = "split-string" },
	{ .name = "find", .kind = STARTER_FIND },
	{ .name = "flock",
	  .letters = "wE",
	  .words = " timeout wait conflict-exit-code ",
	  .flags = " shared exclusive unlock nonblock nb close no-fork verbose ",
	  .operands = 1,
	  .text = 'c',
	  .text_word = "command" },
	{ .name = "ionice", .letters = "cnpPu", .words = " class classdata ", .flags = " ignore " },
	{ .name = "ksh", .kind = STARTER_SHELL },
	{ .name = "ltrace", .letters = "aADeFlnopsuwx" },
	{ .name = "mksh", .kind = STARTER_SHELL },
	{ .name = "nice", .letters = "n", .words = " adjustment ", .flags = " help version " },
	{ .name = "nohup", .flags = " help version " },
	{ .name = "nsenter", .letters = "tSG", .words = " target setuid setgid " },
	{ .name = "parallel", .kind = STARTER_XARGS, .letters = "jPNnLsIaSdtC" },
	{ .name = "prlimit", .letters = "po", .words = " pid output " },
	{ .name = "rbash", .kind = STARTER_SHELL, .words = " rcfile init-file " },
	{ .name = "runuser",
	  .kind = STARTER_SU,
	  .letters = "sgGwuT",
	  .words = " shell group supp-group whitelist-environment user ",
	  .flags = " login preserve-environment fast pty ",
	  .text = 'c',
	  .text_word = "command" },
	{ .name = "script",
	  .kind = STARTER_SU,
	  .letters = "BEIOTmo",
	  .flags = " append return flush force quiet ",
	  .text = 'c',
	  .text_word = "command" },
	{ .name = "setarch", .operands = 1 },
	{ .name = "setpriv",
	  .words = " reuid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig "
		   "selinux-label apparmor-profile ",
	  .flags = " nnp no-new-privs clear-groups keep-groups init-groups reset-env " },
	{ .name = "setsid", .flags = " ctty fork wait " },
	{ .name = "sg", .kind = STARTER_SU, .text = 'c' },
	{ .name = "sh", .kind = STARTER_SHELL },
	{ .name = "start-stop-daemon",
	  .kind = STARTER_SU,
	  .letters = "aonpuxgcrdNPIk",
	  .text = 'x',
	  .text_word = "exec" },
	{ .name = "stdbuf", .letters = "ioe", .words = " input output error " },
	{ .name = "strace",
	  .letters = "abeEIoOpPsSuUX",
	  .words = " output trace attach string-limit user " },
	{ .name = "su",
	  .kind = STARTER_SU,
	  .letters = "sgGwT",
	  .words = " shell group supp-group whitelist-environment ",
	  .flags = " login preserve-environment fast pty ",
	  .text = 'c',
	  .text_word = "command" },
	{ .name = "sudo",
	  .letters = "aCcDghpRrtTuU",
	  .words = " user group host prompt chdir chroot role type other-user close-from ",
	  .flags = " non-interactive stdin login shell preserve-env background set-home askpass "
		   "reset-timestamp preserve-groups ",
	  .assigns = true },
	{ .name = "systemd-run", .letters = "HMpuE", .assigns = true },
	{ .name = "taskset", .letters = "p", .flags = " all-tasks cpu-list ", .operands = 1 },
	{ .name = "time",
	  .letters = "fo",
	  .words = " format output ",
	  .flags = " append verbose portability quiet " },
	{ .name = "timeout",
	  .letters = "sk",
	  .words = " signal kill-after ",
	  .flags = " preserve-status foreground verbose ",
	  .operands = 1 },
	{ .name = "unshare", .letters = "SGRw" },
	{ .name = "watch",
	  .kind = STARTER_TEXT,
	  .letters = "nq",
	  .words = " interval equexit ",
	  .flags = " beep color differences errexit exec chgexit no-title precise no-wrap " },
	{ .name = "xargs",
	  .kind = STARTER_XARGS,
	  .letters = "IEdLnPsaRJ",
	  .words = " arg-file delimiter max-args max-procs max-chars process-slot-var ",
	  .flags = " null interactive no-run-if-empty verbose exit open-tty show-limits replace "
		   "max-lines eof " },
	{ .name = "zsh", .kind = STARTER_SHELL },
};

static bool is_same(const char *a, const char *b, size_t len)
{
	return strlen(a) == len && !memcmp(a, b, len);
}

enum builtin_kind builtin_of(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (is_same(builtins[i].name, name, len))
			return builtins[i].kind;
	return BUILTIN_NONE;
}

const struct starter *starter_of(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(starters); i++)
		if (is_same(starters[i].name, name, len))
			return &starters[i];
	return NULL;
}

size_t path_prefix(const char *s, size_t len)
{
	const char *slash = memrchr(s, '/', len);
	size_t n = slash ? (size_t)(slash - s) : 0;

	for (size_t i = 0; n && n + 1 < len && shell_path[i]; i++)
		if (is_same(shell_path[i], s, n))
			return n + 1;
	return 0;
}
