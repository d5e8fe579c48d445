/* SPDX-License-Identifier: Apache-2.0 */
/* The spare shell is the image's own bash, run as `bash -c SCRIPT`: it reads its text from a
 * descriptor, closes it, and evaluates the text. Known differences from `bash -c TEXT`, found by
 * running a table of texts both ways (tests/unit/test_init_spare_shell.c):
 *   - a syntax error is reported by "bash: eval:" instead of "bash: -c:" (status 2 in both);
 *   - `set -x` marks one level more ("++");
 *   - PIPESTATUS is (0) instead of unset before the first command;
 * - the last command of a text is not exec'ed in place of the shell. If a signal kills it, the
 *     shell prints a message to stderr and exits with 128 + n. A text that is one simple command is
 *     therefore sent as `_=PATH exec TEXT`, which has the effect of bash's own exec; only longer
 *     texts differ.
 * With a variable that changes how bash starts or parses, no spare shell is used. */
#include "init/exec/spare_shell.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/clock.h"
#include "init/exec/process.h"
#include "init/core/guest_path.h"
#include "init/exec/process_tree.h"

enum {
	REQUEST_MAX = 64 * 1024, /* environment, directory and user */
	TEXT_MAX = 4096,
	PROGRAM_SIZE = 1024, /* path of the program of a simple command */
	RETRY_US = 1000 * 1000, /* delay before a spare shell that died is replaced */
};

static const char script[] = "IFS= read -r -d '' -u 9 BASH_EXECUTION_STRING || exit; exec 9<&-; "
			     "SECONDS=0; : \"$0\"; eval \"$BASH_EXECUTION_STRING\"";

static char request[REQUEST_MAX]; /* the last AGENT_SPARE_SHELL message */
static size_t request_len;

static struct {
	bool ready, due;
	int text_fd;
	uint64_t count;
	int64_t not_before_us;
	dev_t cwd_dev;
	ino_t cwd_ino;
	struct passwd_user user;
	struct process r; /* process, cgroup and pipes, until a record takes them over */
} spare = { .text_fd = -1 };

static void close_pipes(void)
{
	close_autop(&spare.r.out[0].pipe);
	close_autop(&spare.r.out[1].pipe);
	exec_cgroup_drop(&spare.r.cgroup);
}

static void discard(void)
{
	if (!spare.ready)
		return;
	spare.ready = false;
	if (spare.r.cgroup.name[0])
		exec_cgroup_signal(&spare.r.cgroup, SIGKILL);
	if (!spare.r.has_subreaper && spare.r.pid > 0)
		kill(spare.r.pid, SIGKILL);
	if (spare.r.has_subreaper && !spare.r.subreaper_gone)
		process_tree_signal(spare.r.subreaper, SIGKILL);
	if (spare.r.has_subreaper)
		close(spare.r.subreaper_fd);
	close(spare.text_fd);
	close_pipes();
}

static bool affects_bash(const char *env, uint32_t envc)
{
	static const char *const names[] = { "BASH_ENV=",      "BASH_FUNC_",	   "BASHOPTS=",
					     "SHELLOPTS=",     "POSIXLY_CORRECT=", "TMOUT=",
					     "BASH_XTRACEFD=", "BASH_COMPAT=",	   "PS4=",
					     "BASH_ARGV0=",    "IGNOREEOF=" };

	for (; envc--; env += strlen(env) + 1) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (!strncmp(env, names[i], strlen(names[i])))
				return true;
	}
	return false;
}

int spare_shell_set(const void *msg, size_t len, struct err *err)
{
	struct process_args c;

	if (len > sizeof(request))
		return err_set(err, ERR_LIMIT, "environment of the spare shell is too long");
	if (process_args_parse(&c, msg, len, err) < 0)
		return -1;
	discard();
	request_len = 0;
	if (affects_bash(c.env, c.m.envc))
		return 0; /* no spare shell: every command starts its own */
	memcpy(request, msg, len);
	request_len = len;
	spare.due = true;
	spare.not_before_us = 0;
	return 0;
}

/* As the user, because the user's rights decide which directory the path leads to. */
static bool stat_cwd(const struct process_args *c, struct stat *ret)
{
	const char *dir = c->cwd[0] ? c->cwd : c->user.home;
	auto_close int fd = -1;
	bool ok = false;

	if (passwd_impersonate(&c->user.cred) == 0 && dir[0] == '/') {
		fd = guest_path_openat(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
		ok = fd >= 0 && fstat(fd, ret) == 0;
	}
	passwd_revert();
	return ok;
}

static int start_bash(struct process_args *c, int text_end, struct err *err)
{
	static char bash[] = "bash", dash_c[] = "-c";
	static char *argv[4] = { bash, dash_c };
	const struct agent_exec m = { .flags = c->m.flags & AGENT_MERGE };
	struct spawn s = {
		.cred = &c->user.cred,
		.argv = argv,
		.envp = c->envp,
		.cwd = c->cwd,
		.home = c->user.home,
		.text_fd = text_end,
		.bash = true,
	};
	const char *text = script;

	memcpy(&argv[2], &text, sizeof(text)); /* execve() does not write to it */
	if (process_launch_piped(&spare.r, 'a', &s, &m, err) == 0)
		return 0;
	close_pipes();
	return -1;
}

void spare_shell_schedule(void)
{
	spare.due = request_len != 0 && !spare.ready;
}

void spare_shell_restart(void)
{
	discard();
	spare_shell_schedule();
}

uint64_t spare_shell_next_timer(void)
{
	return spare.due && spare.not_before_us ? (uint64_t)spare.not_before_us : UINT64_MAX;
}

void spare_shell_start_if_due(void)
{
	struct process_args c;
	struct stat st;
	struct err err;
	int text[2];

	if (!spare.due || spare.ready ||
	    (spare.not_before_us && clock_mono_us() < spare.not_before_us))
		return;
	spare.due = false;
	spare.not_before_us = 0;
	if (process_args_parse(&c, request, request_len, &err) < 0 || !stat_cwd(&c, &st) ||
	    pipe2(text, O_CLOEXEC) < 0)
		return;
	memset(&spare.r, 0, sizeof(spare.r));
	spare.r.id = ++spare.count;
	spare.r.subreaper_fd = spare.r.out[0].pipe = spare.r.out[1].pipe = -1;
	if (fcntl(text[1], F_SETFL, O_NONBLOCK) == 0 && start_bash(&c, text[0], &err) == 0) {
		spare.ready = true;
		spare.text_fd = text[1];
		spare.user = c.user;
		spare.cwd_dev = st.st_dev;
		spare.cwd_ino = st.st_ino;
	} else {
		close(text[1]);
	}
	close(text[0]);
}

static bool matches(const struct process_args *c)
{
	/* The rules of Landlock refer to the files that exist at the start. */
	const uint32_t shape =
		AGENT_PTY | AGENT_STDIN_OPEN | AGENT_LOGIN | AGENT_MERGE | AGENT_LANDLOCK;
	struct agent_exec m;
	struct stat st;
	const char *env;
	size_t rest;

	if (!spare.ready || !(c->m.flags & AGENT_BASH) || strlen(c->strings) > TEXT_MAX)
		return false;
	memcpy(&m, request + sizeof(struct agent_hdr), sizeof(m));
	if ((c->m.flags & shape) != (m.flags & AGENT_MERGE) || c->m.envc != m.envc)
		return false;
	/* Environment, directory and user are adjacent in both messages. */
	env = agent_msg_string(request, request_len, 0);
	rest = request_len - (size_t)(env - request);
	if (rest != c->env_len + strlen(c->cwd) + strlen(c->user_spec) + 2 ||
	    memcmp(env, c->env, rest) != 0)
		return false;
	return !memcmp(&spare.user, &c->user, sizeof(c->user)) && stat_cwd(c, &st) &&
	       st.st_dev == spare.cwd_dev && st.st_ino == spare.cwd_ino;
}

/* ---- texts that are one simple command ------------------------------------------------------- */

/* Builtins and keywords of bash 5.2. A missing one only costs a fork. */
static const char *const shell_words[] = {
	".",	    ":",       "[",	  "[[",	    "alias",   "bg",	   "bind",     "break",
	"builtin",  "caller",  "case",	  "cd",	    "command", "compgen",  "complete", "compopt",
	"continue", "coproc",  "declare", "dirs",   "disown",  "do",	   "done",     "echo",
	"elif",	    "else",    "enable",  "esac",   "eval",    "exec",	   "exit",     "export",
	"false",    "fc",      "fg",	  "fi",	    "for",     "function", "getopts",  "hash",
	"help",	    "history", "if",	  "in",	    "jobs",    "kill",	   "let",      "local",
	"logout",   "mapfile", "popd",	  "printf", "pushd",   "pwd",	   "read",     "readarray",
	"readonly", "return",  "select",  "set",    "shift",   "shopt",	   "source",   "suspend",
	"test",	    "then",    "time",	  "times",  "trap",    "true",	   "type",     "typeset",
	"ulimit",   "umask",   "unalias", "unset",  "until",   "wait",	   "while",
};

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_./,:=+@%-", c));
}

/* The end of a quoted string without expansions, or NULL. */
static const char *skip_quoted(const char *at)
{
	const char *end;

	if (*at == '\'') {
		end = strchr(at + 1, '\'');
		return end ? end + 1 : NULL;
	}
	for (end = at + 1; *end && *end != '"'; end++)
		if (*end == '$' || *end == '`' || *end == '\\' || *end == '!')
			return NULL;
	return *end ? end + 1 : NULL;
}

static bool has_only_words(const char *at)
{
	while (*at) {
		if (*at == ' ' || is_plain(*at)) {
			at++;
		} else if (*at == '\'' || *at == '"') {
			at = skip_quoted(at);
			if (!at)
				return false;
		} else {
			return false;
		}
	}
	return true;
}

static bool is_program(const char *path)
{
	auto_close int fd = -1;
	struct stat st;

	for (const char *c = path; *c; c++)
		if (!is_plain(*c))
			return false;
	fd = guest_path_openat(AT_FDCWD, path, O_PATH, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

static bool search_path(const char *name, size_t len, char **envp, char path[PROGRAM_SIZE])
{
	const char *dir = guest_spawn_env(envp, "PATH");

	while (dir && *dir) {
		size_t n = strcspn(dir, ":");

		/* A relative directory depends on the working directory of the shell. */
		if (dir[0] != '/' || n + len + 2 > PROGRAM_SIZE)
			return false;
		memcpy(path, dir, n);
		path[n] = '/';
		memcpy(path + n + 1, name, len);
		path[n + 1 + len] = 0;
		if (is_program(path))
			return true;
		dir += n + (dir[n] == ':');
	}
	return false;
}

/* True only if bash would do nothing with the text but exec one existing program: words of plain
 * characters and quoted strings without expansions, the first neither builtin nor keyword.
 * ret: the path of the program, of plain characters too. */
static bool is_simple_command(const char *text, char **envp, char ret[PROGRAM_SIZE])
{
	size_t len = 0;

	text += strspn(text, " ");
	while (is_plain(text[len]) && text[len] != '=' && text[len] != '%')
		len++;
	if (!len || len >= PROGRAM_SIZE || text[0] == '-' || (text[len] && text[len] != ' ') ||
	    !has_only_words(text + len))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(shell_words); i++)
		if (strlen(shell_words[i]) == len && !memcmp(shell_words[i], text, len))
			return false;
	if (!memchr(text, '/', len))
		return search_path(text, len, envp, ret);
	memcpy(ret, text, len);
	ret[len] = 0;
	return ret[0] == '/' && is_program(ret);
}

/* ---- handing over ---------------------------------------------------------------------------- */

static bool send_text(const struct process_args *c)
{
	char before[PROGRAM_SIZE + 16], program[PROGRAM_SIZE];
	struct iovec iov[2] = { { before, 0 }, { .iov_len = strlen(c->strings) + 1 } };

	/* bash sets `_` to the path it found the program at; its exec builtin does not. */
	if (is_simple_command(c->strings, c->envp, program))
		iov[0].iov_len = (size_t)snprintf(before, sizeof(before), "_=%s exec ", program);
	memcpy(&iov[1].iov_base, &c->strings, sizeof(c->strings));
	return writev(spare.text_fd, iov, 2) == (ssize_t)(iov[0].iov_len + iov[1].iov_len);
}

bool spare_shell_take(struct process *r, const struct process_args *c)
{
	if (!matches(c))
		return false;
	if (!send_text(c)) {
		discard();
		return false;
	}
	close(spare.text_fd);
	r->pid = spare.r.pid;
	r->subreaper = spare.r.subreaper;
	r->subreaper_fd = spare.r.subreaper_fd;
	r->has_subreaper = spare.r.has_subreaper;
	r->cgroup = spare.r.cgroup;
	for (int i = 0; i < 2; i++)
		r->out[i].pipe = spare.r.out[i].pipe;
	spare.ready = false;
	return true;
}

bool spare_shell_owns_pid(pid_t pid)
{
	return spare.ready && pid == (spare.r.has_subreaper ? spare.r.subreaper : spare.r.pid);
}

bool spare_shell_handle_exit(pid_t pid)
{
	if (!spare_shell_owns_pid(pid))
		return false;
	spare.r.subreaper_gone = true;
	spare.r.pid = -1;
	discard();
	spare.due = true;
	spare.not_before_us = clock_mono_us() + RETRY_US;
	return true;
}
