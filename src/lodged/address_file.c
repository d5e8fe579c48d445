/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/address_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/auto.h"

enum { PATH_SIZE = 4200 };

void address_file_remove(const char *home)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/addresses", home);
	(void)unlink(path);
}

int address_file_write(const char *home, const char *lines, struct err *err)
{
	char path[PATH_SIZE], temp[PATH_SIZE + 8], net[64];
	ssize_t n = readlink("/proc/self/ns/net", net, sizeof(net));
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "%s/addresses", home);
	snprintf(temp, sizeof(temp), "%s.new", path);
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || dprintf(fd, "%.*s\n%s", n > 0 ? (int)n : 0, net, lines) < 0 ||
	    rename(temp, path) < 0)
		return err_sys(err, errno, "%s", path);
	return 0;
}
