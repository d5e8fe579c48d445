/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/template_add.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/limit_opt.h"
#include "cli/oci.h"
#include "cli/opt.h"
#include "cli/unpack.h"
#include "sandbox/files.h"
#include "sandbox/home.h"
#include "sandbox/keeper_client.h"
#include "wire/agent.h"

/* Room for what is being unpacked; sandboxes made from it later have limits of their own. */
#define UNPACK_MEMORY (1ull << 30)
#define UNPACK_DISK (256ull << 30)
#define UNPACK_INODES (64ull << 20)

enum { PASSWD_MAX = 1 << 20 };

struct add_opts {
	struct template t; /* first: limit_opt.h */
	const char *home;
};

static int set_home(void *ctx, const char *name, const char *value, struct err *err)
{
	((struct add_opts *)ctx)->home = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

static const struct opt options[] = {
	LIMIT_OPT_TABLE,
	{ "home", 0, "DIR", set_home, "where lodge keeps its data" },
	{ NULL },
};

static const struct opt_command command = {
	.name = "lodge template add",
	.usage = "NAME SOURCE [OPTION...]",
	.summary = "Makes a template from a directory, a root file system as a tar (also .gz .xz "
		   ".zst)\nor an OCI image layout. The options become the defaults of its "
		   "sandboxes.",
	.opts = options,
};

/* ---- sandboxes to work in -------------------------------------------------------------------- */

static int new_empty(struct keeper_client *k, struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();

	spec.template = "empty";
	spec.class = KEEPER_CLASS_ROOT;
	spec.store = KEEPER_STORE_DISK;
	spec.uid = spec.gid = 0;
	spec.limits.memory_bytes = UNPACK_MEMORY;
	spec.limits.disk_bytes = spec.limits.file_bytes = UNPACK_DISK;
	spec.limits.inodes = UNPACK_INODES;
	return sandbox_new(k, &spec, ret, err);
}

static int new_host(struct keeper_client *k, struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();

	spec.limits.memory_bytes = UNPACK_MEMORY; /* xz -9 and zstd --long need a lot */
	return sandbox_new(k, &spec, ret, err);
}

/* ---- sources --------------------------------------------------------------------------------- */

struct source {
	const char *path;
	int fd;
	struct stat st;
	bool is_dir, is_oci;
	struct oci_image image;
};

static int open_source(const char *path, struct source *s, struct template *t, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	s->path = path;
	s->fd = -1;
	if (fd < 0 || fstat(fd, &s->st) < 0)
		return err_sys(err, errno, "%s", path);
	s->is_dir = S_ISDIR(s->st.st_mode);
	s->is_oci = s->is_dir && oci_is_layout(fd);
	if (!s->is_dir && !S_ISREG(s->st.st_mode))
		return err_set(err, ERR_INVALID, "%s: neither a directory nor a file", path);
	if (s->is_oci)
		return oci_open(steal_fd(&fd), t, &s->image, err) < 0 ? err_ctx(err, "%s", path)
								      : 0;
	s->fd = steal_fd(&fd);
	return 0;
}

static void close_source(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->is_oci && s->image.nlayers)
		oci_close(&s->image);
}

/* tar(1) reads the directory with the caller's own rights. A sandbox with the directory bound in
 * would not do: in there every owner but its own looks like nobody. */
static int spawn_tar(const char *dir, int out, pid_t *ret, struct err *err)
{
	const char *const argv[] = { "tar",
				     "--format=pax",
				     "--pax-option=delete=atime,delete=ctime",
				     "--numeric-owner",
				     "--one-file-system",
				     "--warning=no-file-ignored",
				     "--exclude=./dev/*",
				     "--exclude=./proc/*",
				     "--exclude=./sys/*",
				     "-C",
				     dir,
				     "-cf",
				     "-",
				     "--",
				     ".",
				     NULL };
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	char *args[sizeof(argv) / sizeof(argv[0])];
	sigset_t pipe_only;
	int r;

	memcpy(args, argv, sizeof(argv));
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE); /* when unpacking failed it has to go quietly */
	if (posix_spawn_file_actions_init(&fa) || posix_spawnattr_init(&at))
		return err_sys(err, ENOMEM, "tar");
	r = posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawnattr_setsigdefault(&at, &pipe_only);
	if (!r)
		r = posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGDEF);
	if (!r)
		r = posix_spawnp(ret, "tar", &fa, &at, args, environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return r ? err_sys(err, r, "tar") : 0;
}

static int unpack_dir(struct unpack *u, const char *dir, unsigned flags, struct err *err)
{
	auto_close int in = -1, out = -1;
	int p[2], status = 0, r;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	in = p[0];
	out = p[1];
	if (spawn_tar(dir, out, &pid, err) < 0)
		return -1;
	close(steal_fd(&out));
	r = unpack_tar(u, in, UNPACK_PLAIN, flags, err);
	close(steal_fd(&in)); /* a tar that still writes ends by this */
	waitpid(pid, &status, 0);
	if (!r && (!WIFEXITED(status) || WEXITSTATUS(status) > 1))
		return err_set(err, ERR_INTERNAL, "%s: tar could not read all of it", dir);
	return r;
}

static int unpack_one(struct unpack *u, struct keeper_client *k, int fd, unsigned flags,
		      struct err *err)
{
	enum unpack_packing packing = unpack_detect(fd);

	if (packing != UNPACK_PLAIN && !u->host && new_host(k, &u->host, err) < 0)
		return -1;
	return unpack_tar(u, fd, packing, flags, err);
}

static int unpack_source(struct unpack *u, struct keeper_client *k, struct source *s,
			 struct err *err)
{
	unsigned features, flags;

	if (keeper_client_features(k, &features, err) < 0)
		return -1;
	/* an ordinary user has one id only: everything in the template is its own then */
	flags = AGENT_JOB_ROOTFS | (features & KEEPER_HAS_ROOT ? AGENT_JOB_OWNERS : 0);
	if (s->is_dir && !s->is_oci)
		return unpack_dir(u, s->path, flags, err);
	if (!s->is_oci) {
		u->total = (uint64_t)s->st.st_size;
		return unpack_one(u, k, s->fd, flags, err);
	}
	u->total = s->image.total;
	for (size_t i = 0; i < s->image.nlayers; i++)
		if (unpack_one(u, k, s->image.layers[i], flags | AGENT_JOB_OCI, err) < 0)
			return err_ctx(err, "layer %zu", i + 1);
	return 0;
}

/* ---- add ------------------------------------------------------------------------------------- */

int template_add_drop(struct keeper_client *k, const char *name, struct err *err)
{
	struct keeper_request r = keeper_client_request(KEEPER_TEMPLATE_DROP, NULL);

	snprintf(r.template, sizeof(r.template), "%s", name);
	return keeper_client_call(k, &r, NULL, 0, NULL, NULL, err);
}

static int fill(struct keeper_client *k, struct sandbox *sb, struct source *s, struct err *err)
{
	struct unpack u = { .into = sb, .progress = isatty(STDERR_FILENO) };
	int r = unpack_source(&u, k, s, err);

	unpack_done(&u);
	sandbox_free(u.host);
	return r;
}

/* "uid:gid" of a line "name:x:uid:gid:..." */
static bool find_user(char *passwd, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);
	char *save = NULL;

	for (char *line = strtok_r(passwd, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *uid = strncmp(line, name, n) == 0 && line[n] == ':'
				    ? strchr(line + n + 1, ':')
				    : NULL;
		size_t len = uid ? strspn(uid + 1, "0123456789:") : 0;

		while (len && uid[len] == ':')
			len--;
		if (len < 3 || len >= size)
			continue;
		snprintf(ret, size, "%.*s", (int)len, uid + 1);
		return true;
	}
	return false;
}

/* A name becomes a number now: later, in a sandbox of an ordinary user, there is only one user and
 * its number has to be known before the sandbox is made. */
static int resolve_user(struct sandbox *sb, struct template *t, struct err *err)
{
	char number[64];
	uint32_t uid, gid;
	auto_free void *passwd = NULL;
	size_t len;
	bool found;

	if (!t->user || template_parse_user(t->user, &uid, &gid, err) != 0)
		return 0;
	if (files_read(sb, NULL, "/etc/passwd", PASSWD_MAX, &passwd, &len, err) < 0)
		return err_ctx(err, "user %s", t->user);
	found = find_user(passwd, t->user, number, sizeof(number));
	if (!found || template_parse_user(number, &uid, &gid, err) <= 0)
		return err_set(err, ERR_NOT_FOUND, "user %.60s: not in its /etc/passwd", t->user);
	if ((!uid || !gid) && t->class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID, "user %.60s is root: that needs --root", t->user);
	free(t->user);
	t->user = strdup(number);
	return t->user ? 0 : err_sys(err, ENOMEM, "user");
}

static int build(const char *home, const char *name, struct source *s, struct template *t,
		 struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct err ignored;

	if (keeper_client_spawn(&how, &k, err) < 0 || new_empty(k, &sb, err) < 0)
		return -1;
	if (fill(k, sb, s, err) < 0 || resolve_user(sb, t, err) < 0)
		return err_ctx(err, "%s", s->path);
	/* files without a template.json are what an interrupted add or rm left */
	template_add_drop(k, name, &ignored);
	if (sandbox_seal(sb, name, err) < 0)
		return -1;
	if (template_save(home, name, t, err) < 0) {
		template_add_drop(k, name, &ignored);
		return -1;
	}
	return 0;
}

static int check_name(const char *home, const char *name, struct err *err)
{
	struct template t;
	int r;

	if (!template_name_is_valid(name))
		return err_set(err, ERR_INVALID,
			       "template \"%.64s\": a name is made of a-z, 0-9, '.', '_', '-'",
			       name);
	if (!strcmp(name, "host") || !strcmp(name, "empty"))
		return err_set(err, ERR_INVALID, "template \"%s\" is built in", name);
	r = template_load(home, name, &t, err);
	template_fini(&t);
	if (r == 0 || err->code != ERR_NOT_FOUND)
		return err_set(err, ERR_CONFLICT,
			       "template \"%s\" is there already (lodge template rm %s)", name,
			       name);
	return 0;
}

static int add(struct add_opts *o, const char *name, const char *path, struct err *err)
{
	struct source s = { .fd = -1 };
	char home[HOME_SIZE];
	uint32_t uid = 1000, gid = 1000;
	int r;

	if (home_find(o->home, home, err) < 0 || check_name(home, name, err) < 0)
		return -1;
	if (o->t.user && template_parse_user(o->t.user, &uid, &gid, err) > 0 && (!uid || !gid) &&
	    o->t.class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID, "--user: 0 needs --root");
	if (open_source(path, &s, &o->t, err) < 0)
		return -1;
	if (s.is_oci && s.image.wants_root && !o->t.user && o->t.class != KEEPER_CLASS_ROOT)
		fprintf(stderr, "lodge: this image expects root; its sandboxes run as uid 1000 "
				"(--root gives them a root inside)\n");
	r = build(home, name, &s, &o->t, err);
	close_source(&s);
	return r;
}

int template_add(int argc, char **argv, struct err *err)
{
	struct add_opts o = { 0 };
	int first, n;

	template_init(&o.t);
	n = opt_parse(&command, argc, argv, &o, &first, err);
	if (n < 0) {
		n = -OPT_EXIT_USAGE;
	} else if (n > 0) {
		n = 0;
	} else if (argc - first != 2) {
		err_set(err, ERR_INVALID, "template add: give a name and a source");
		n = -OPT_EXIT_USAGE;
	} else {
		n = add(&o, argv[first], argv[first + 1], err);
	}
	template_fini(&o.t);
	return n;
}
