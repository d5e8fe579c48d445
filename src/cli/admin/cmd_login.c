/* SPDX-License-Identifier: Apache-2.0 */
/* lodge login: saves the address and key of the service that all other commands use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/core/api_cmd.h"
#include "cli/core/cleanup.h"

enum { KEY_SIZE = 4096 };

static void restore_echo(void *was)
{
	tcsetattr(STDIN_FILENO, TCSAFLUSH, was);
}

/* Reads the key without echo; a signal turns echo on again. */
static int prompt_key(const char *url, char **ret, struct err *err)
{
	struct termios was, quiet;
	char buf[KEY_SIZE];
	bool got;

	if (tcgetattr(STDIN_FILENO, &was) < 0)
		return err_set(err, ERR_INVALID,
			       "%.120s needs an API key: use --key-file or LODGE_API_KEY", url);
	quiet = was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	if (cleanup_set(restore_echo, &was, err) < 0)
		return -1;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	fprintf(stderr, "API key for %s: ", url);
	got = fgets(buf, sizeof(buf), stdin) != NULL;
	cleanup_run();
	fputc('\n', stderr);
	buf[got ? strcspn(buf, "\r\n") : 0] = '\0';
	if (!*buf)
		return err_set(err, ERR_INVALID, "API key must not be empty");
	*ret = strdup(buf);
	explicit_bzero(buf, sizeof(buf));
	return *ret ? 0 : err_sys(err, ENOMEM, "key");
}

/* Lists sessions, because /health works without a key. */
static int check_access(const struct target *w, struct err *err)
{
	auto_call(client_free) struct client *c = NULL;

	if (client_new(w->url, w->key, &c, err) < 0)
		return -1;
	return client_call(c, "GET", "/v1/sessions?limit=1", NULL, NULL, err);
}

static int make_dirs(const char *path, struct err *err)
{
	auto_free char *dir = strdup(path);

	if (!dir)
		return err_sys(err, ENOMEM, "configuration");
	*strrchr(dir, '/') = '\0';
	for (char *p = dir + 1;; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = '\0';
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "%s", dir);
		*p = was;
		if (!was)
			return 0;
	}
}

static int write_file(const char *path, const struct target *w, struct err *err)
{
	char temp[TARGET_PATH + 16];
	auto_close int fd = -1;

	snprintf(temp, sizeof(temp), "%s.new", path);
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || dprintf(fd, "url = %s\n", w->url) < 0 ||
	    (w->key && dprintf(fd, "key = %s\n", w->key) < 0) || fsync(fd) < 0 ||
	    rename(temp, path) < 0) {
		err_sys(err, errno, "%s", path);
		(void)unlink(temp);
		return -1;
	}
	return 0;
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_fini(target_fini) struct target w = { 0 };
	char path[TARGET_PATH];

	(void)a;
	if (target_config(path, err) < 0 || target_find(&w, err) < 0)
		return -1;
	if (check_access(&w, err) < 0) {
		/* a service without authentication needs no key: ask only if one is required */
		if (w.key || err->sys != EKEYREJECTED)
			return -1;
		if (prompt_key(w.url, &w.key, err) < 0 || check_access(&w, err) < 0)
			return -1;
	}
	if (make_dirs(path, err) < 0 || write_file(path, &w, err) < 0)
		return -1;
	printf("saved %s in %s\n", w.url, path);
	return 0;
}

static const struct cli_option options[] = {
	{ "url", 0, "URL", CLI_SET, 0, "unix:PATH, http://HOST:PORT or https://HOST:PORT",
	  .set = target_set },
	{ "key-file", 0, "FILE", CLI_SET, 0, "file with the API key", .set = target_set },
	{ NULL },
};

const struct command cmd_login = {
	.name = "login",
	.usage = "[--url URL] [--key-file FILE]",
	.summary = "save the address and key of a service",
	.options = options,
	.more = "The key comes from --key-file or LODGE_API_KEY, or is typed on a terminal. lodge\n"
		"tests it and saves it in ~/.config/lodge/config, which only you can read.\n",
	.failed = CLI_EXIT_FAILED,
	.local = true,
	.run = run,
};
