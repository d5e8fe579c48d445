/* SPDX-License-Identifier: Apache-2.0 */
/* lodge login: which daemon all other commands ask from now on. */
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
#include "cli/core/commands.h"
#include "cli/core/options.h"
#include "cli/core/cleanup.h"
#include "cli/core/target.h"

DEFINE_AUTO(struct client *, client_free);

enum { KEY_SIZE = 4096 };

static const struct cli_option options[] = {
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct cli_option_command command = {
	.name = "lodge login",
	.usage = "[--url URL] [--key-file FILE]",
	.summary = "Remembers which lodged the other commands ask, and with which key.",
	.opts = options,
	.more = "The key is that of --key-file, LODGE_API_KEY or, on a terminal, typed in. It is\n"
		"tried, then written to ~/.config/lodge/config, which only you can read.\n",
};

static void show_again(void *was)
{
	tcsetattr(STDIN_FILENO, TCSAFLUSH, was);
}

/* Typed without being shown; who interrupts it sees again what is typed. */
static int ask_key(const char *url, char **ret, struct err *err)
{
	struct termios was, quiet;
	char buf[KEY_SIZE];
	bool got;

	if (tcgetattr(STDIN_FILENO, &was) < 0)
		return err_set(err, ERR_INVALID,
			       "no key for %.120s: give --key-file, or LODGE_API_KEY", url);
	quiet = was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	if (cleanup_set(show_again, &was, err) < 0)
		return -1;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	fprintf(stderr, "key for %s: ", url);
	got = fgets(buf, sizeof(buf), stdin) != NULL;
	cleanup_run();
	fputc('\n', stderr);
	buf[got ? strcspn(buf, "\r\n") : 0] = '\0';
	if (!*buf)
		return err_set(err, ERR_INVALID, "no key was given");
	*ret = strdup(buf);
	explicit_bzero(buf, sizeof(buf));
	return *ret ? 0 : err_sys(err, ENOMEM, "key");
}

/* Health needs no key; sessions do. */
static int try_it(const struct target *w, struct err *err)
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
	char temp[WHERE_PATH + 16];
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

static int login(struct err *err)
{
	auto_fini(target_fini) struct target w = { 0 };
	char path[WHERE_PATH];

	if (target_config(path, err) < 0 || target_find(&w, err) < 0)
		return -1;
	if (try_it(&w, err) < 0) {
		/* a service may take whoever comes: only one that asks for a key gets one */
		if (w.key || err->sys != EKEYREJECTED)
			return -1;
		if (ask_key(w.url, &w.key, err) < 0 || try_it(&w, err) < 0)
			return -1;
	}
	if (make_dirs(path, err) < 0 || write_file(path, &w, err) < 0)
		return -1;
	printf("%s is asked from now on (%s)\n", w.url, path);
	return 0;
}

int cmd_login(int argc, char **argv)
{
	struct err err = { 0 };
	int first, n = cli_option_parse(&command, argc, argv, NULL, &first, &err);

	if (n > 0)
		return 0;
	if (n == 0 && first != argc)
		n = err_set(&err, ERR_INVALID, "login: takes no operand (try lodge login --help)");
	if (n < 0)
		return cli_option_fail(CLI_EXIT_USAGE, &err);
	return login(&err) < 0 ? cli_option_fail(CLI_EXIT_FAILED, &err) : 0;
}
