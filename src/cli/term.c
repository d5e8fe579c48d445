/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum { DEV_NULL_MAJOR = 1, DEV_NULL_MINOR = 3 };

static struct termios saved;
static int raw_fd = -1;

bool term_raw(int fd)
{
	struct termios t;

	if (raw_fd < 0 && tcgetattr(fd, &saved) < 0)
		return false;
	t = saved; /* once: what it is when it is raw already is not what it shall be again */
	cfmakeraw(&t);
	if (tcsetattr(fd, TCSADRAIN, &t) < 0)
		return false;
	if (raw_fd < 0)
		atexit(term_restore);
	raw_fd = fd;
	return true;
}

void term_restore(void)
{
	if (raw_fd >= 0)
		tcsetattr(raw_fd, TCSADRAIN, &saved);
	raw_fd = -1;
}

void term_size(uint32_t *rows, uint32_t *cols)
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

bool term_no_input(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) < 0 ||
	       (S_ISCHR(st.st_mode) && st.st_rdev == makedev(DEV_NULL_MAJOR, DEV_NULL_MINOR));
}
