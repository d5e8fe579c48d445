/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/core/local_service.h"

DEFINE_AUTO(FILE *, fclose);

enum { FILE_SIZE = 64 << 10, KEY_SIZE = 4096 };

static struct {
	const char *url, *key_file;
} given; /* on the command line */

int target_set(void *at, const char *name, const char *value, struct err *err)
{
	(void)at;
	*(strcmp(name, "--url") == 0 ? &given.url : &given.key_file) = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: value must not be empty", name);
}

const struct cli_option target_options[] = {
	{ "url", 0, "URL", CLI_SET, 0, "service to use (LODGE_URL)", .set = target_set,
	  .shared = true },
	{ "key-file", 0, "FILE", CLI_SET, 0, "file with the API key (LODGE_API_KEY)",
	  .set = target_set, .shared = true },
	{ NULL },
};

void target_fini(struct target *w)
{
	if (w->key)
		explicit_bzero(w->key, strlen(w->key));
	free(w->url);
	free(w->key);
	*w = (struct target){ 0 };
}

/* ---- the configuration file: lines `url = ...`, `key = ...`, `key_file = ...` ---------------- */

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

static int replace(char **field, const char *value, struct err *err)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : err_sys(err, ENOMEM, "configuration");
}

int target_read_key(int fd, const char *path, char **ret, struct err *err)
{
	char buf[KEY_SIZE], *key;
	ssize_t n = file_read_fd(fd, buf, sizeof(buf));
	int r;

	if (n < 0)
		return err_sys(err, (int)-n, "%s", path);
	key = trim(buf);
	key[strcspn(key, "\r\n")] = '\0';
	if (!*key)
		return err_set(err, ERR_INVALID, "%s: contains no key", path);
	r = replace(ret, key, err);
	explicit_bzero(buf, sizeof(buf));
	return r;
}

static int read_key_file(const char *path, char **ret, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? err_sys(err, errno, "%s", path) : target_read_key(fd, path, ret, err);
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
		return replace(&w->url, value, err);
	if (strcmp(name, "key") == 0) {
		*ret_has_key = true;
		return replace(&w->key, value, err);
	}
	if (strcmp(name, "key_file") == 0) {
		free(w->key);
		w->key = NULL;
		return read_key_file(value, &w->key, err);
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

/* A file that does not exist is empty. */
static int read_config(const char *path, struct target *ret, struct err *err)
{
	auto_call(fclose) FILE *f = fopen(path, "re");
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

/* ---- finding --------------------------------------------------------------------------------- */

/* A key in the file is sent only to the url in the file, or to the local socket if it has none. */
static int find_url(struct target *w, struct err *err)
{
	const char *url = given.url ? given.url : getenv("LODGE_URL");
	auto_fini(target_fini) struct target file = { 0 };
	bool chosen = url && *url;
	char path[TARGET_PATH];
	struct err ignored;

	if (target_config(path, &ignored) == 0 && read_config(path, &file, err) < 0 && !chosen)
		return -1;
	if (!chosen)
		url = file.url;
	if ((url ? replace(&w->url, url, err) : local_service_find(&w->url, err)) < 0)
		return -1;
	if (file.key && (file.url ? !strcmp(file.url, w->url) : !chosen))
		w->key = steal_ptr(&file.key);
	return 0;
}

static int find_key(struct target *w, struct err *err)
{
	const char *env = getenv("LODGE_API_KEY");

	if (given.key_file)
		return read_key_file(given.key_file, &w->key, err);
	if (env && *env)
		return replace(&w->key, env, err);
	return w->key ? 0 : local_service_key(w, err);
}

int target_find(struct target *ret, struct err *err)
{
	auto_fini(target_fini) struct target w = { 0 };

	if (find_url(&w, err) < 0 || find_key(&w, err) < 0)
		return -1;
	*ret = steal_struct(&w);
	return 0;
}

int target_client(struct client **ret, struct err *err)
{
	auto_fini(target_fini) struct target w = { 0 };

	return target_find(&w, err) < 0 ? -1 : client_new(w.url, w.key, ret, err);
}

/* ---- sessions -------------------------------------------------------------------------------- */

bool target_is_id(const char *arg)
{
	return strncmp(arg, "ses_", 4) == 0 || strncmp(arg, "sbx_", 4) == 0;
}

int target_ref(const char *arg, char ret[TARGET_REF], struct err *err)
{
	bool whole = target_is_id(arg) || strncmp(arg, "key:", 4) == 0;

	if (!*arg || strcmp(arg, "key:") == 0)
		err_set(err, ERR_INVALID,
			"SESSION must not be empty: use a key, or an id (ses_..., sbx_...)");
	else if (snprintf(ret, TARGET_REF, "%s%s", whole ? "" : "key:", arg) >= TARGET_REF)
		err_set(err, ERR_INVALID, "SESSION is too long: a key has at most 255 bytes");
	else
		return 0;
	err->sys = TARGET_NO_REF;
	return -1;
}
