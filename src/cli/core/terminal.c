/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum {
	DEV_NULL_MAJOR = 1,
	DEV_NULL_MINOR = 3,
	ESC = 033,
	KEY_EOF = 0x04,
	END_FIRST_MS = 100,
	END_LAST_MS = 2000,
};

static struct termios saved;
static int raw_fd = -1;

bool terminal_raw(int fd)
{
	struct termios t;

	if (raw_fd < 0 && tcgetattr(fd, &saved) < 0)
		return false;
	t = saved; /* saved once, before it was raw the first time */
	cfmakeraw(&t);
	if (tcsetattr(fd, TCSADRAIN, &t) < 0)
		return false;
	if (raw_fd < 0)
		atexit(terminal_restore);
	raw_fd = fd;
	return true;
}

void terminal_restore(void)
{
	if (raw_fd >= 0)
		tcsetattr(raw_fd, TCSADRAIN, &saved);
	raw_fd = -1;
}

void terminal_size(uint32_t *rows, uint32_t *cols)
{
	static const int fds[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	struct winsize w;

	*rows = 24;
	*cols = 80;
	for (int i = 0; i < 3; i++) {
		if (ioctl(fds[i], TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col) {
			*rows = w.ws_row;
			*cols = w.ws_col;
			return;
		}
	}
}

/* ESC [ 24;80 R, ESC [ ? 64;1;2 c and their like: the length, or 0. */
static size_t csi_report(const char *p, size_t len)
{
	size_t n = 2 + strspn(p + 2, "?>=");

	n += strspn(p + n, "0123456789;$");
	return n < len && n > 2 && p[n] && strchr("Rcnty", p[n]) ? n + 1 : 0;
}

/* ESC ] ... or ESC P ..., up to BEL or ESC \. */
static size_t string_report(const char *p, size_t len)
{
	for (size_t n = 2; n < len; n++) {
		if (p[n] == '\a')
			return n + 1;
		if (p[n] == ESC && n + 1 < len && p[n + 1] == '\\')
			return n + 2;
	}
	return 0;
}

size_t terminal_strip_reports(char *bytes, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		const char *p = bytes + i;
		size_t n = 0;

		if (len - i > 2 && *p == ESC)
			n = p[1] == '['			 ? csi_report(p, len - i)
			    : p[1] == ']' || p[1] == 'P' ? string_report(p, len - i)
							 : 0;
		if (!n)
			bytes[out++] = *p;
		i += n ? n : 1;
	}
	return out;
}

size_t terminal_end_keys(bool in_line, char ret[TERMINAL_END_KEYS])
{
	size_t n = 0;

	if (in_line)
		ret[n++] = '\n';
	ret[n++] = KEY_EOF;
	return n;
}

int terminal_end_pause(int last_ms)
{
	if (!last_ms)
		return END_FIRST_MS;
	return last_ms < END_LAST_MS ? 2 * last_ms : END_LAST_MS;
}

bool terminal_no_input(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) < 0 ||
	       (S_ISCHR(st.st_mode) && st.st_rdev == makedev(DEV_NULL_MAJOR, DEV_NULL_MINOR));
}
