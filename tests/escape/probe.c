/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape-probe --list          every check as one line of JSON
 * escape-probe NAME            one check: status 0 held, 1 broken, 77 cannot be judged, else error
 * escape-probe --run NAME...   several, each in a child: one line "NAME <tab> STATUS <tab> text"
 * escape-probe --host DIR      on the host: plants what must not be reachable
 * escape-probe --hold [WORD]   waits to be killed; WORD marks its command line
 * escape-probe --daemon WORD   the same from a process that left session, group and parent
 */
#include "probe.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct check *const tables[] = {
	checks_files,	  checks_proc, checks_pid1,   checks_mounts,  checks_devices,
	checks_processes, checks_fds,  checks_caps,   checks_seccomp, checks_namespaces,
	checks_ipc,	  checks_net,  checks_limits, checks_bombs,   checks_tty,
	checks_time,	  checks_info, checks_cgroup,
};

enum { TEXT_SIZE = 1024, CHECK_SECONDS = 60 };
static char *text; /* shared with the children that run checks */

static int say(int result, const char *fmt, va_list ap)
{
	vsnprintf(text, TEXT_SIZE, fmt, ap);
	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	return result;
}

int held(void)
{
	return HELD;
}

#define DEFINE_SAY(name, value)                                                                    \
	int name(const char *fmt, ...)                                                             \
	{                                                                                          \
		va_list ap;                                                                        \
		int ret;                                                                           \
                                                                                                   \
		va_start(ap, fmt);                                                                 \
		ret = say(value, fmt, ap);                                                         \
		va_end(ap);                                                                        \
		return ret;                                                                        \
	}
DEFINE_SAY(broken, BROKEN)
DEFINE_SAY(unjudged, UNJUDGED)
DEFINE_SAY(trouble, TROUBLE)

static const struct check *find(const char *name)
{
	for (size_t i = 0; i < LEN(tables); i++)
		for (const struct check *c = tables[i]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

static void put_string(const char *key, const char *value)
{
	printf(",\"%s\":", key);
	if (!value) {
		printf("null");
		return;
	}
	putchar('"');
	for (const char *p = value; *p; p++) {
		if (*p == '"' || *p == '\\')
			putchar('\\');
		putchar(*p);
	}
	putchar('"');
}

static int list(void)
{
	static const char *const classes[] = { "", "user", "root", "both" };

	for (size_t i = 0; i < LEN(tables); i++) {
		for (const struct check *c = tables[i]; c->name; c++) {
			printf("{\"name\":\"%s\"", c->name);
			put_string("holds", c->holds);
			put_string("class", classes[c->class]);
			put_string("weaken", c->weaken);
			put_string("nofail", c->nofail);
			put_string("options", c->options);
			put_string("weak_options", c->weak_options);
			printf("}\n");
		}
	}
	return 0;
}

static int run_check(void *arg)
{
	const struct check *c = arg;

	/* a file that is too large must be an error, not a signal */
	signal(SIGXFSZ, SIG_IGN);
	deadline(CHECK_SECONDS);
	return c->run(c);
}

static int run_one(const char *name)
{
	const struct check *c = find(name);
	int ret;

	if (!c) {
		fprintf(stderr, "escape-probe: no check is called %s\n", name);
		return 2;
	}
	ret = run_check((void *)(size_t)c);
	if (text[0])
		printf("%s\n", text);
	return ret;
}

static int run_several(char **names)
{
	for (; *names; names++) {
		const struct check *c = find(*names);
		int status;

		text[0] = '\0';
		status = c ? in_child(run_check, (void *)(size_t)c) : 2;
		printf("%s\t%d\t%s\n", *names, status, text);
		fflush(stdout);
	}
	return 0;
}

static int hold(bool daemonise)
{
	if (daemonise) {
		for (int i = 0; i < 2; i++) {
			if (fork() != 0)
				_exit(0);
			setsid();
		}
		for (int fd = 0; fd < 3; fd++)
			close(fd);
	} else {
		printf("holding\n");
		fflush(stdout);
	}
	for (;;)
		pause();
}

/* Run as a set-user-id file, it prints its ids and ignores every other request.
 */
static int print_ids(void)
{
	printf("uid %d euid %d gid %d egid %d caps %llx\n", (int)getuid(), (int)geteuid(),
	       (int)getgid(), (int)getegid(), (unsigned long long)status_number("CapEff", 16));
	return 0;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (getauxval(AT_SECURE) || strcmp(word, "--ids") == 0)
		return print_ids();
	text = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		return TROUBLE;
	if (strcmp(word, "--list") == 0)
		return list();
	if (strcmp(word, "--run") == 0)
		return run_several(argv + 2);
	if (strcmp(word, "--host") == 0 && argc == 3)
		return host_main(argv[2]);
	if (strcmp(word, "--hold") == 0 || strcmp(word, "--daemon") == 0)
		return hold(word[2] == 'd');
	if (argc == 2 && word[0] != '-')
		return run_one(word);
	fprintf(stderr, "usage: escape-probe --list | NAME | --run NAME...\n");
	return 2;
}
