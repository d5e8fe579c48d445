/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/home_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *get_variable(const char *name)
{
	const char *v = secure_getenv(name);

	return v && *v ? v : NULL;
}

const char *home_dir_variable(void)
{
	const char *data = get_variable("LODGE_DATA");

	return data ? data : get_variable("LODGE_HOME");
}

static int choose_dir(const char *given, char ret[HOME_DIR_SIZE], struct err *err)
{
	const char *dir;
	int n;

	if (!given)
		given = home_dir_variable();
	if (given) {
		char cwd[HOME_DIR_SIZE];

		if (given[0] == '/')
			n = snprintf(ret, HOME_DIR_SIZE, "%s", given);
		else if (getcwd(cwd, sizeof(cwd)))
			n = snprintf(ret, HOME_DIR_SIZE, "%s/%s", cwd, given);
		else
			return err_sys(err, errno, "data directory %s", given);
	} else if (geteuid() == 0) {
		n = snprintf(ret, HOME_DIR_SIZE, "/var/lib/lodge");
	} else if ((dir = get_variable("XDG_DATA_HOME")) && dir[0] == '/') {
		n = snprintf(ret, HOME_DIR_SIZE, "%s/lodge", dir);
	} else if ((dir = get_variable("HOME")) && dir[0] == '/') {
		n = snprintf(ret, HOME_DIR_SIZE, "%s/.local/share/lodge", dir);
	} else {
		return err_set(err, ERR_INVALID,
			       "cannot find a data directory; set --data, LODGE_DATA or HOME");
	}
	if (n < 0 || n >= HOME_DIR_SIZE)
		return err_sys(err, ENAMETOOLONG, "data directory");
	return 0;
}

/* As mkdir -p. A read-only parent is not an error if the directory exists. */
static int make_dirs(char *path, struct err *err)
{
	for (char *p = path + 1;; p++) {
		char was = *p;

		if (was != '/' && was != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return err_sys(err, errno, "data directory %s", path);
		*p = was;
		if (!was)
			return 0;
	}
}

int home_dir_find(const char *given, char ret[HOME_DIR_SIZE], struct err *err)
{
	struct stat st;

	if (choose_dir(given, ret, err) < 0)
		return -1;
	if (stat(ret, &st) < 0) {
		if (make_dirs(ret, err) < 0)
			return -1;
		if (stat(ret, &st) < 0)
			return err_sys(err, errno, "data directory %s", ret);
	}
	if (!S_ISDIR(st.st_mode))
		return err_sys(err, ENOTDIR, "data directory %s", ret);
	return 0;
}

void home_dir_keeper(const char *home, char ret[HOME_DIR_SIZE])
{
	struct stat st;
	int n = snprintf(ret, HOME_DIR_SIZE, "%s/keeper", home);

	if (n < 0 || n >= HOME_DIR_SIZE || lstat(ret, &st) < 0 || !S_ISDIR(st.st_mode))
		snprintf(ret, HOME_DIR_SIZE, "%s", home);
}
