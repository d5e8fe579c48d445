/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: lines `url = ...`, `key = ...`, `key_file = ...`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/core/target.h"

enum { FILE_SIZE = 64 << 10, KEY_SIZE = 4096 };

static void file_close(FILE *f)
{
	fclose(f);
}
DEFINE_AUTO(FILE *, file_close);

int target_config(char ret[TARGET_PATH], struct err *err)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (base && base[0] == '/')
		n = snprintf(ret, TARGET_PATH, "%s/lodge/config", base);
	else if (home && home[0] == '/')
		n = snprintf(ret, TARGET_PATH, "%s/.config/lodge/config", home);
	else
		return err_set(err, ERR_NOT_FOUND,
			       "cannot find the configuration: HOME is not set");
	return n < TARGET_PATH ? 0 : err_set(err, ERR_INVALID, "HOME: path is too long");
}

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r\n");
	end = s + strlen(s);
	while (end > s && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	return s;
}

int target_key_of(const char *path, char **ret, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? err_sys(err, errno, "%s", path) : target_key_in(fd, path, ret, err);
}

int target_key_in(int fd, const char *path, char **ret, struct err *err)
{
	char buf[KEY_SIZE], *key;
	ssize_t n = file_read_fd(fd, buf, sizeof(buf));

	if (n < 0)
		return err_sys(err, (int)-n, "%s", path);
	key = trim(buf);
	key[strcspn(key, "\r\n")] = '\0';
	if (!*key)
		return err_set(err, ERR_INVALID, "%s: contains no key", path);
	*ret = strdup(key);
	explicit_bzero(buf, sizeof(buf));
	return *ret ? 0 : err_sys(err, ENOMEM, "key");
}

static int set(char **field, const char *value, struct err *err)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : err_sys(err, ENOMEM, "configuration");
}

static int parse_line(char *line, struct target *w, bool *ret_has_key, struct err *err)
{
	char *name = trim(line), *eq = strchr(name, '='), *value;

	if (!*name || *name == '#')
		return 0;
	if (!eq)
		return err_set(err, ERR_INVALID, "expected NAME = VALUE");
	*eq = '\0';
	name = trim(name);
	value = trim(eq + 1);
	if (!*value)
		return err_set(err, ERR_INVALID, "%.40s: value must not be empty", name);
	if (strcmp(name, "url") == 0)
		return set(&w->url, value, err);
	if (strcmp(name, "key") == 0) {
		*ret_has_key = true;
		return set(&w->key, value, err);
	}
	if (strcmp(name, "key_file") == 0) {
		free(w->key);
		w->key = NULL;
		return target_key_of(value, &w->key, err);
	}
	return err_set(err, ERR_INVALID, "unknown setting \"%.40s\"; use url, key or key_file",
		       name);
}

static void warn_readable(FILE *f, const char *path)
{
	struct stat st;

	if (fstat(fileno(f), &st) == 0 && (st.st_mode & 077))
		fprintf(stderr,
			"lodge: warning: %s contains a key and is readable by others (chmod 600)\n",
			path);
}

int target_read(const char *path, struct target *ret, struct err *err)
{
	auto_call(file_close) FILE *f = fopen(path, "re");
	char line[FILE_SIZE];
	bool has_key = false;
	int number = 0;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, errno, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		number++;
		if (parse_line(line, ret, &has_key, err) < 0)
			return err_ctx(err, "%s:%d", path, number);
	}
	if (ferror(f))
		return err_sys(err, EIO, "%s", path);
	if (has_key)
		warn_readable(f, path);
	return 0;
}
