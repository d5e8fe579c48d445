/* SPDX-License-Identifier: Apache-2.0 */
/* escape-probe: runs inside a sandbox and tries to get out of it, one check at a time. No check may
 * harm the machine even if nothing stops it: calls that would take effect are judged without
 * executing them (judge.h) or made with arguments that cannot take effect. */
#ifndef LODGE_ESCAPE_PROBE_H
#define LODGE_ESCAPE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

enum result {
	HELD = 0,
	BROKEN = 1,
	UNJUDGED = 77, /* cannot be decided on this machine */
	TROUBLE = 99, /* the check itself failed */
};

enum { USER = 1, ROOT = 2, BOTH = 3 }; /* classes of templates a check is meant for */

struct check {
	const char *name;
	const char *holds; /* what must hold, as a sentence */
	int (*run)(const struct check *c);
	unsigned class;
	const char *weaken; /* LODGE_WEAKEN with which it must be found broken */
	const char *nofail; /* or: why no weakened sandbox can show it */
	const char *options; /* needs its own sandbox, started with these options */
	const char *weak_options; /* the weakened run has these instead */
	const char *arg;
};

extern const struct check checks_files[], checks_proc[], checks_pid1[], checks_mounts[],
	checks_devices[], checks_processes[], checks_fds[], checks_caps[], checks_seccomp[],
	checks_namespaces[], checks_ipc[], checks_net[], checks_limits[], checks_bombs[],
	checks_tty[], checks_time[], checks_info[], checks_cgroup[];

/* The result of a check. The message says what got through, or why it cannot be judged. */
int held(void);
int broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int unjudged(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int trouble(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What the runner recorded about the host, in the file `facts` next to the program; NULL if absent.
 */
const char *fact(const char *key);
long fact_number(const char *key); /* -1 if missing */
bool is_root_class(void);
/* Created by an ordinary user: there is only one id, and no cgroup. */
bool is_rootless(void);

/* Reads a whole file (up to size - 1), NUL-terminated; returns its length or -errno. */
ssize_t read_text(const char *path, char *buf, size_t size);
/* What a file or directory has wherever it is mounted and however it changes: inode number and time
 * of birth, or of its last change where the file system keeps no birth. False if there is none. */
bool file_id(const char *path, char *buf, size_t size);
/* The number after "Name:" in /proc/self/status, in this base; -1 if there is no such line. */
long long status_number(const char *name, int base);
/* Runs fn(arg) in a child with a time limit; returns its exit status, or 128 + the signal that
 * ended it. */
int in_child(int (*fn)(void *arg), void *arg);
/* Ends a check that hangs. */
void deadline(unsigned seconds);

struct mount {
	char *root, *point, *options, *fields, *type, *source, *super;
};
/* Calls fn for each line of /proc/self/mountinfo until it returns non-zero; that value, else 0, or
 * -1 when the table cannot be read. */
int each_mount(int (*fn)(const struct mount *m, void *arg), void *arg);
bool has_option(const char *list, const char *option);

/* escape-probe --host DIR: what the runner plants on the host, until its input ends. */
int host_main(const char *dir);

#endif
