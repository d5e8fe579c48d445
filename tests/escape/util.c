/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the checks: facts about the host, files of /proc, children. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t used = 0;
	ssize_t n = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while (used < size - 1 && (n = read(fd, buf + used, size - 1 - used)) > 0)
		used += (size_t)n;
	if (n < 0)
		n = -errno;
	close(fd);
	buf[used] = '\0';
	return n < 0 ? n : (ssize_t)used;
}

static const char *facts_text(void)
{
	static char text[16384];
	char path[PATH_MAX], *slash;
	const char *self = (const char *)getauxval(AT_EXECFN);

	if (text[0])
		return text;
	snprintf(path, sizeof(path), "%s", self ? self : "");
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, 8, "facts");
	read_text(path, text, sizeof(text));
	return text;
}

const char *fact(const char *key)
{
	static char values[16][512];
	static unsigned next;
	size_t len = strlen(key);
	char *value = values[next++ % LEN(values)];

	for (const char *p = facts_text(); *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (strncmp(p, key, len) != 0 || p[len] != '=')
			continue;
		snprintf(value, sizeof(values[0]), "%.*s", (int)strcspn(p + len + 1, "\n"),
			 p + len + 1);
		return value;
	}
	return NULL;
}

long fact_number(const char *key)
{
	const char *text = fact(key);

	return text ? strtol(text, NULL, 10) : -1;
}

bool is_root_class(void)
{
	const char *class = fact("CLASS");

	return class && strcmp(class, "root") == 0;
}

bool is_rootless(void)
{
	return fact_number("ROOTLESS") == 1;
}

long long status_number(const char *name, int base)
{
	char text[8192];
	size_t len = strlen(name);

	if (read_text("/proc/self/status", text, sizeof(text)) < 0)
		return -1;
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strncmp(p, name, len) == 0 && p[len] == ':')
			return strtoll(p + len + 1, NULL, base);
	return -1;
}

void deadline(unsigned seconds)
{
	signal(SIGALRM, SIG_DFL);
	alarm(seconds);
}

int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return TROUBLE;
	if (pid == 0) {
		deadline(20);
		_exit(fn(arg));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return TROUBLE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* "36 35 98:0 /root /point options [fields...] - type source super" */
static bool mount_parse(char *line, struct mount *m)
{
	char *dash = strstr(line, " - ");
	char *word[6], *save = NULL;

	if (!dash)
		return false;
	*dash = '\0';
	for (size_t i = 0; i < LEN(word); i++)
		if (!(word[i] = strtok_r(i ? NULL : line, " ", &save)))
			return false;
	*m = (struct mount){ .root = word[3], .point = word[4], .options = word[5] };
	m->fields = save ? save : dash;
	m->type = strtok_r(dash + 3, " ", &save);
	m->source = strtok_r(NULL, " ", &save);
	m->super = strtok_r(NULL, " ", &save);
	return m->type && m->source && m->super;
}

int each_mount(int (*fn)(const struct mount *m, void *arg), void *arg)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	if (!f)
		return -1;
	while (!ret && getline(&line, &size, f) > 0) {
		struct mount m;

		line[strcspn(line, "\n")] = '\0';
		if (mount_parse(line, &m))
			ret = fn(&m, arg);
	}
	free(line);
	fclose(f);
	return ret;
}

bool has_option(const char *list, const char *option)
{
	size_t len = strlen(option);

	for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
		if (strncmp(p, option, len) == 0 && (p[len] == ',' || !p[len] || p[len] == '='))
			return true;
	return false;
}

bool file_id(const char *path, char *buf, size_t size)
{
	struct statx st;
	const struct statx_timestamp *t;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_CTIME | STATX_BTIME, &st) <
	    0)
		return false;
	t = st.stx_mask & STATX_BTIME ? &st.stx_btime : &st.stx_ctime;
	snprintf(buf, size, "%llu.%lld.%u", (unsigned long long)st.stx_ino, (long long)t->tv_sec,
		 t->tv_nsec);
	return true;
}
