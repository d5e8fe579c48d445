/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/simple_command.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/auto.h"
#include "init/core/guest_path.h"

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
	for (end = at + 1; *end && *end != '"'; end++) {
		if (*end == '$' || *end == '`' || *end == '\\' || *end == '!')
			return NULL;
	}
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

	for (const char *c = path; *c; c++) {
		if (!is_plain(*c))
			return false;
	}
	fd = guest_path_openat(AT_FDCWD, path, O_PATH, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

static bool search_path(const char *name, size_t len, char **envp,
			char path[SIMPLE_COMMAND_PATH_SIZE])
{
	const char *dir = NULL;

	for (; *envp && !dir; envp++)
		dir = strncmp(*envp, "PATH=", 5) ? NULL : *envp + 5;
	while (dir && *dir) {
		size_t n = strcspn(dir, ":");

		/* A relative directory depends on the working directory of the shell. */
		if (dir[0] != '/' || n + len + 2 > SIMPLE_COMMAND_PATH_SIZE)
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

bool simple_command_parse(const char *text, char **envp, char ret[SIMPLE_COMMAND_PATH_SIZE])
{
	size_t len = 0;

	text += strspn(text, " ");
	while (is_plain(text[len]) && text[len] != '=' && text[len] != '%')
		len++;
	if (!len || len >= SIMPLE_COMMAND_PATH_SIZE || text[0] == '-' ||
	    (text[len] && text[len] != ' ') || !has_only_words(text + len))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(shell_words); i++) {
		if (strlen(shell_words[i]) == len && !memcmp(shell_words[i], text, len))
			return false;
	}
	if (!memchr(text, '/', len))
		return search_path(text, len, envp, ret);
	memcpy(ret, text, len);
	ret[len] = 0;
	return ret[0] == '/' && is_program(ret);
}
