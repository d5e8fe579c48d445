/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals: input cannot be injected, and none comes from outside. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "judge.h"

#define IOCTL(name, number)                                                                        \
	{                                                                                          \
		name, SYS_ioctl,                                                                   \
		{                                                                                  \
			-1, number, 0                                                              \
		}                                                                                  \
	}
/* With garbage in the upper half, which the kernel ignores (CVE-2019-10063). */
#define WIDE(number) ((long)(0x100000000ull | (number)))

static const struct call sti[] = {
	IOCTL("TIOCSTI", TIOCSTI),
	IOCTL("TIOCSTI-wide", WIDE(TIOCSTI)),
};
static const struct call console[] = {
	IOCTL("TIOCLINUX", TIOCLINUX),
	IOCTL("TIOCLINUX-wide", WIDE(TIOCLINUX)),
	IOCTL("TIOCCONS", TIOCCONS),
};
static const struct call discipline[] = {
	IOCTL("TIOCSETD", TIOCSETD),
	IOCTL("TIOCSETD-wide", WIDE(TIOCSETD)),
};

static int refused(const struct check *c)
{
	if (strcmp(c->arg, "sti") == 0)
		return judge_all(sti, LEN(sti));
	if (strcmp(c->arg, "console") == 0)
		return judge_all(console, LEN(console));
	return judge_all(discipline, LEN(discipline));
}

/* Really tries it on a new terminal: the byte must not come back as input. */
static int type_into_own(const struct check *c)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	char byte = 'x';

	(void)c;
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return trouble("no terminal: %s", strerror(errno));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return trouble("%s: %s", ptsname(master), strerror(errno));
	setsid();
	ioctl(slave, TIOCSCTTY, 0);
	return ioctl(slave, TIOCSTI, &byte) == 0 ? broken("TIOCSTI typed a byte") : held();
}

const struct check checks_tty[] = {
	{ "tty-sti", "TIOCSTI is refused", refused, BOTH, "seccomp", .arg = "sti" },
	{ "tty-console", "TIOCLINUX and TIOCCONS are refused", refused, BOTH, "seccomp",
	  .arg = "console" },
	{ "tty-discipline", "TIOCSETD is refused", refused, BOTH, "seccomp", .arg = "discipline" },
	{ "tty-own-sti", "TIOCSTI fails on a terminal of the sandbox", type_into_own, BOTH,
	  "seccomp" },
	{ 0 },
};
