/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test_hook.h"
#include "init/core/guest_path.h"

enum {
	FILE_MAX = 1 << 20, /* of /etc/passwd and /etc/group */
	LINE_MAX_ = 1024, /* a longer line is skipped */
	ID_LEN_MAX = 15, /* a longer number is a name */
};

/* Reads an untrusted file line by line. */
struct line_reader {
	int fd;
	size_t total, have, at;
	bool skip;
	char buf[2 * LINE_MAX_];
};

static int lines_open(struct line_reader *l, const char *path)
{
	const char *kind;

	*l = (struct line_reader){ .fd = guest_path_open_file(AT_FDCWD, path, O_RDONLY, 0, &kind) };
	return l->fd < 0 ? -1 : 0;
}

static char *lines_next(struct line_reader *l)
{
	for (;;) {
		char *line = l->buf + l->at, *nl = memchr(line, '\n', l->have - l->at);
		bool skipped = l->skip;
		ssize_t n;

		if (nl) {
			*nl = 0;
			l->at = (size_t)(nl + 1 - l->buf);
			l->skip = false;
			if (!skipped)
				return line;
			continue;
		}
		memmove(l->buf, line, l->have - l->at);
		l->have -= l->at;
		l->at = 0;
		if (l->have >= LINE_MAX_) {
			l->skip = true;
			l->have = 0;
		}
		n = l->total < FILE_MAX ? read(l->fd, l->buf + l->have, LINE_MAX_) : 0;
		if (n <= 0)
			return NULL;
		l->have += (size_t)n;
		l->total += (size_t)n;
	}
}

/* Splits "a:b:c" in place; false unless there are exactly `n` fields. */
static bool split_fields(char *line, char **fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *colon = strchr(line, ':');

		fields[i] = line;
		if (i + 1 == n)
			return !colon;
		if (!colon)
			return false;
		*colon = 0;
		line = colon + 1;
	}
	return false;
}

/* Decimal digits before `end`. */
static bool parse_id(const char *s, char end, uint32_t *ret)
{
	uint64_t v = 0;

	if (*s == end)
		return false;
	for (; *s != end; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
		if (v > INT32_MAX)
			return false;
	}
	*ret = (uint32_t)v;
	return true;
}

/* By name, or by uid when `name` is NULL. */
static bool passwd_find(const char *name, uint32_t uid, struct passwd_user *u)
{
	struct line_reader l;
	char *line, *f[7];
	bool found = false;
	uint32_t id, gid;

	if (lines_open(&l, "/etc/passwd") < 0)
		return false;
	while (!found && (line = lines_next(&l))) {
		if (!split_fields(line, f, 7) || !parse_id(f[2], 0, &id) ||
		    !parse_id(f[3], 0, &gid))
			continue;
		if (name ? strcmp(f[0], name) != 0 : id != uid)
			continue;
		found = true;
		u->cred.uid = id;
		u->cred.gid = gid;
		snprintf(u->name, sizeof(u->name), "%s", f[0]);
		snprintf(u->home, sizeof(u->home), "%s", f[5][0] == '/' ? f[5] : "/");
		snprintf(u->shell, sizeof(u->shell), "%s", f[6][0] == '/' ? f[6] : "/bin/sh");
	}
	close(l.fd);
	return found;
}

static bool is_member(char *members, const char *name)
{
	size_t n = strlen(name);

	for (char *at = members; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, n) && (at[n] == ',' || at[n] == 0))
			return true;
	return false;
}

static void groups_find(struct passwd_user *u)
{
	struct line_reader l;
	char *line, *f[4];
	uint32_t gid;

	if (!u->name[0] || lines_open(&l, "/etc/group") < 0)
		return;
	while (u->cred.ngroups < INIT_GROUPS_MAX && (line = lines_next(&l))) {
		if (!split_fields(line, f, 4) || !parse_id(f[2], 0, &gid) ||
		    !is_member(f[3], u->name))
			continue;
		/* Ignore group 0 without a root user: the guest may have written the entry. */
		if (gid != u->cred.gid && (gid != 0 || init_binding.root_class))
			u->cred.groups[u->cred.ngroups++] = gid;
	}
	close(l.fd);
}

static int check_allowed(const char *spec, const struct passwd_user *u, struct err *err)
{
	const struct agent_bind *b = &init_binding.b;

	if (init_binding.one_id && u->cred.uid == b->uid)
		return 0;
	if (init_binding.one_id)
		return err_set(err, ERR_DENIED,
			       "user %s: not available; this sandbox has a single user", spec);
	if (u->cred.uid == BOOT_INIT_ID || u->cred.gid == BOOT_INIT_ID)
		return err_set(err, ERR_DENIED, "user %s is reserved", spec);
	if (!init_binding.root_class &&
	    ((u->cred.uid == 0 && b->uid != 0) || (u->cred.gid == 0 && b->gid != 0)))
		return err_set(err, ERR_DENIED,
			       "user %s: not available; this sandbox has no root user", spec);
	return 0;
}

static int parse_spec(const char *spec, struct passwd_user *u, struct err *err)
{
	const char *end = strchrnul(spec, ':');
	uint32_t uid, gid;

	if (end - spec > ID_LEN_MAX || !parse_id(spec, *end, &uid)) {
		if (passwd_find(spec, 0, u))
			return 0;
		return err_set(err, ERR_INVALID, "user %.64s: not found in /etc/passwd", spec);
	}
	if (*end && !parse_id(end + 1, 0, &gid))
		return err_set(err, ERR_INVALID, "user %.64s: must be a name, a uid or uid:gid",
			       spec);
	if (!passwd_find(NULL, uid, u)) {
		u->cred.uid = uid;
		u->cred.gid = uid == init_binding.b.uid ? init_binding.b.gid : uid;
	}
	if (*end)
		u->cred.gid = gid;
	return 0;
}

int passwd_resolve(const char *spec, struct passwd_user *ret, struct err *err)
{
	struct passwd_user u = { .home = "/", .shell = "/bin/sh" };

	if (*spec) {
		if (parse_spec(spec, &u, err) < 0)
			return -1;
	} else {
		passwd_find(NULL, init_binding.b.uid, &u);
		u.cred.uid = init_binding.b.uid;
		u.cred.gid = init_binding.b.gid;
	}
	if (check_allowed(*spec ? spec : "(default)", &u, err) < 0)
		return -1;
	if (!init_binding.one_id)
		groups_find(&u);
	*ret = u;
	return 0;
}

static struct cred saved_cred; /* of lodge-init, restored by passwd_revert() */
static bool saved;

static int set_effective(bool none)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		d[i].effective = none ? 0 : d[i].permitted;
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

int passwd_impersonate(const struct cred *c)
{
	if (init_binding.one_id)
		return 0;
	if (!saved) {
		saved_cred.uid = geteuid();
		saved_cred.gid = getegid();
		saved = true;
	}
	if (syscall(SYS_setgroups, (size_t)c->ngroups, c->groups) < 0)
		return -errno;
	setfsgid(c->gid);
	setfsuid(c->uid);
	/* setfsuid() does not report errors: a second call returns the id in effect. */
	if ((uint32_t)setfsuid(c->uid) != c->uid || (uint32_t)setfsgid(c->gid) != c->gid) {
		passwd_revert();
		return -EPERM;
	}
	/* In the root class lodge-init has capabilities over files, which a user must not have. */
	return init_binding.root_class && c->uid != 0 ? set_effective(true) : 0;
}

void passwd_revert(void)
{
	if (init_binding.one_id || !saved)
		return;
	if (init_binding.root_class)
		set_effective(false);
	setfsuid(saved_cred.uid);
	setfsgid(saved_cred.gid);
	syscall(SYS_setgroups, (size_t)0, NULL);
	/* Changing the user reset this flag to fs.suid_dumpable. */
	prctl(PR_SET_DUMPABLE, hook_weak("dumpable"));
}

int passwd_switch_user(const struct cred *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	static const struct __user_cap_data_struct none[2];

	if (!init_binding.one_id && (syscall(SYS_setgroups, (size_t)c->ngroups, c->groups) < 0 ||
				     syscall(SYS_setresgid, c->gid, c->gid, c->gid) < 0 ||
				     syscall(SYS_setresuid, c->uid, c->uid, c->uid) < 0))
		return -errno;
	if ((c->uid != 0 || !init_binding.root_class) && !hook_weak("caps") &&
	    syscall(SYS_capset, &h, none) < 0)
		return -errno;
	return 0;
}
