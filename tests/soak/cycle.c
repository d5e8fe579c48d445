/* SPDX-License-Identifier: Apache-2.0 */
/* The mix: each kind is one way in which a guest or its caller can leave something behind. */
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "sandbox/guest_exec.h"
#include "sandbox/files_client.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "../unit/sandbox_calls.h"

enum { WAIT_MS = 60000 };

unsigned cycle_below(struct soak *s, unsigned n)
{
	/* xorshift: the same seed is the same soak */
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (unsigned)(s->random % n);
}

/* ---- operations in a sandbox ---------------------------------------------------------------- */

static int run(struct sandbox *sb, const struct guest_exec_spec *spec, const char *input, int code,
	       unsigned hits, const char *out, struct err *err)
{
	struct guest_exec_output o;
	int r = 0;

	if (guest_exec_run(sb, spec, input, input ? strlen(input) : 0, &o, err) < 0)
		return -1;
	if (o.result.code != code || (o.result.hits & hits) != hits ||
	    (out && strcmp(o.out, out) != 0))
		r = err_set(err, ERR_INTERNAL,
			    "status %d signal %d hits %x, output '%.60s', errors '%.60s'",
			    o.result.code, o.result.signal, o.result.hits, o.out, o.err);
	guest_exec_output_fini(&o);
	return r;
}

static int do_echo(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "echo hi" };

	(void)s;
	return run(*sb, &spec, NULL, 0, 0, "hi\n", err);
}

static int do_fail(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "echo no >&2; exit 3" };

	(void)s;
	return run(*sb, &spec, NULL, 3, 0, "", err);
}

static int do_missing(struct soak *s, struct sandbox **sb, struct err *err)
{
	const char *const argv[] = { "/no/such/program", NULL };
	struct guest_exec_spec spec = { .argv = argv };
	struct guest_exec_output o;

	(void)s;
	if (guest_exec_run(*sb, &spec, NULL, 0, &o, err) < 0)
		return err->sys == ENOENT ? 0 : -1;
	guest_exec_output_fini(&o);
	return err_set(err, ERR_INTERNAL, "a missing program was run");
}

static int do_survivors(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = {
		.text = "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &); echo hi"
	};

	(void)s;
	return run(*sb, &spec, NULL, 0, 0, "hi\n", err);
}

static int do_timeout(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "setsid sleep 1000 & sleep 1000",
					.timeout_ms = 40 };

	(void)s;
	return run(*sb, &spec, NULL, -1, AGENT_HIT_TIME, NULL, err);
}

static int do_files(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = {
		.text = "mkdir d; for i in 1 2 3 4 5 6 7 8; do head -c 100000 "
			"/dev/zero >d/$i; done;"
			"ln -s d l; cat note; rm -r d/1; mkfifo p; sync"
	};
	void *back = NULL;
	size_t len;
	int r;

	(void)s;
	if (files_write(*sb, NULL, "note", "written", 7, 0, 0644, err) < 0 ||
	    run(*sb, &spec, NULL, 0, 0, "written", err) < 0)
		return -1;
	r = files_read(*sb, NULL, "d/2", 1 << 20, &back, &len, err);
	free(back);
	return r < 0 ? -1 : files_remove_tree(*sb, NULL, "d", err);
}

static int do_input(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "cat" };

	(void)s;
	return run(*sb, &spec, "through\n", 0, 0, "through\n", err);
}

static int do_many(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "sleep 0.01; echo hi" };
	struct guest_exec *x[4] = { NULL };
	int r = 0;

	(void)s;
	for (size_t i = 0; i < ARRAY_LEN(x) && r == 0; i++)
		r = guest_exec_begin(*sb, &spec, &x[i], err);
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		if (x[i] && r == 0)
			r = guest_exec_wait(x[i], WAIT_MS, err);
		guest_exec_free(x[i]);
	}
	return r;
}

static int do_signal(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "kill -9 $$" };

	(void)s;
	return run(*sb, &spec, NULL, -1, 0, NULL, err);
}

/* Destroyed while a command runs. */
static int do_busy(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "while :; do (sleep 0.001); done" };
	struct guest_exec *x = NULL;
	int r = guest_exec_start(*sb, &spec, &x, err);

	(void)s;
	if (r == 0)
		r = sandbox_destroy(*sb, err);
	guest_exec_free(x);
	return r;
}

static int do_pty(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = {
		.text = "test -t 1 && stty size", .pty = true, .rows = 7, .cols = 11
	};

	(void)s;
	return run(*sb, &spec, NULL, 0, 0, "7 11\r\n", err);
}

/* Far more than the log holds; the newest output stays. */
static int do_flood(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "head -c 3000000 /dev/zero", .log_bytes = 1 << 16 };
	struct guest_exec_output o;
	int r = 0;

	(void)s;
	if (guest_exec_run(*sb, &spec, NULL, 0, &o, err) < 0)
		return -1;
	if (o.out_total != 3000000 || o.out_len != spec.log_bytes)
		r = err_set(err, ERR_INTERNAL, "%zu of %llu bytes kept", o.out_len,
			    (unsigned long long)o.out_total);
	guest_exec_output_fini(&o);
	return r;
}

static int do_share(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "cat /share/word" };

	(void)s;
	return run(*sb, &spec, NULL, 0, 0, "shared\n", err);
}

static int do_reconnect(struct soak *s, struct sandbox **sb, struct err *err)
{
	char id[KEEPER_ID_SIZE];

	if (do_echo(s, sb, err) < 0)
		return -1;
	snprintf(id, sizeof(id), "%s", sandbox_id(*sb));
	sandbox_free(*sb);
	*sb = NULL;
	return sandbox_connect(s->keeper, id, sb, err) < 0 ? -1 : do_echo(s, sb, err);
}

/* lodge-init dies during a command. */
static int do_crash(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = { .text = "sleep 1000 & sleep 1000" };
	struct guest_exec *x = NULL;
	struct err gone;

	(void)s;
	if (guest_exec_start(*sb, &spec, &x, err) < 0)
		return -1;
	kill(sandbox_pid(*sb), SIGKILL);
	if (guest_exec_wait(x, WAIT_MS, &gone) == 0 || gone.code == ERR_TIMEOUT) {
		guest_exec_free(x);
		return err_set(err, ERR_INTERNAL, "the end of lodge-init was not noticed");
	}
	guest_exec_free(x);
	return 0;
}

/* The kernel chooses the process to kill; the limit hit must be reported. */
static int do_memory(struct soak *s, struct sandbox **sb, struct err *err)
{
	struct guest_exec_spec spec = {
		.text = "head -c 200M /dev/zero | tail -c 100M >/dev/null"
	};
	unsigned hits = s->has_cgroup ? AGENT_HIT_MEMORY : 0;
	struct guest_exec_output o;

	if (guest_exec_run(*sb, &spec, NULL, 0, &o, err) < 0)
		return -1;
	hits &= ~o.result.hits;
	guest_exec_output_fini(&o);
	if (hits)
		return err_set(err, ERR_INTERNAL, "the memory limit was not reported");
	return 0;
}

static int do_nothing(struct soak *s, struct sandbox **sb, struct err *err)
{
	(void)s, (void)sb, (void)err;
	return 0;
}

/* ---- the kinds ------------------------------------------------------------------------------ */

static struct kind {
	const char *name;
	unsigned share; /* of 100 */
	int (*run)(struct soak *s, struct sandbox **sb, struct err *err);
	long done;
} kinds[] = {
	{ "echo", 21, do_echo },      { "fail", 8, do_fail },
	{ "missing", 6, do_missing }, { "survivors", 10, do_survivors },
	{ "timeout", 5, do_timeout }, { "files", 10, do_files },
	{ "input", 6, do_input },     { "many", 5, do_many },
	{ "signal", 4, do_signal },   { "busy", 4, do_busy },
	{ "pty", 4, do_pty },	      { "flood", 2, do_flood },
	{ "share", 3, do_share },     { "reconnect", 4, do_reconnect },
	{ "crash", 3, do_crash },     { "memory", 1, do_memory },
	{ "unused", 4, do_nothing },
};
static long one_shots, from_pool, on_disk;

static struct kind *choose(struct soak *s)
{
	unsigned r = cycle_below(s, 100);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (r < kinds[i].share)
			return &kinds[i];
		r -= kinds[i].share;
	}
	return &kinds[0];
}

void cycle_print(void)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		printf("%s %ld, ", kinds[i].name, kinds[i].done);
	printf("one-shot %ld; from the pool %ld, on disk %ld\n", one_shots, from_pool, on_disk);
}

static void fill_spec(struct soak *s, const struct kind *kind, const struct sandbox_bind *share,
		      struct sandbox_spec *spec)
{
	*spec = sandbox_spec_default();
	spec->no_pool = !s->has_pool || cycle_below(s, 10) < 3;
	if (s->has_disk && cycle_below(s, 5) == 0)
		spec->store = KEEPER_STORE_DISK;
	if (s->has_pool && cycle_below(s, 20) == 0)
		spec->class = KEEPER_CLASS_ROOT;
	if (kind->run == do_memory)
		spec->limits.memory_bytes = 32 << 20;
	if (kind->run == do_share) {
		spec->binds = share;
		spec->nbinds = 1;
	}
	on_disk += spec->store == KEEPER_STORE_DISK;
}

/* `lodge run`: its own keeper, for one command. */
static int one_shot(struct soak *s, struct err *err)
{
	const char *argv[] = { s->lodge, "run", "--home", s->home, "--", "true", NULL };
	int status, r;
	pid_t pid;

	r = posix_spawn(&pid, s->lodge, NULL, NULL, (char *const *)(uintptr_t)argv, environ);
	if (r != 0)
		return err_sys(err, r, "%s", s->lodge);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(err, ERR_INTERNAL, "lodge run: status %d", status);
	one_shots++;
	return 0;
}

int cycle_run(struct soak *s, struct err *err)
{
	struct kind *kind = choose(s);
	struct sandbox_bind share = { .fd = s->share, .path = "/share" };
	struct sandbox_spec spec;
	struct sandbox *sb = NULL;
	struct err other;
	int r;

	if (cycle_below(s, 50) == 0)
		return one_shot(s, err);
	fill_spec(s, kind, &share, &spec);
	if (sandbox_new(s->keeper, &spec, &sb, err) < 0)
		return err_ctx(err, "%s: create", kind->name);
	from_pool += sandbox_source(sb) == KEEPER_SOURCE_POOL;
	r = kind->run(s, &sb, err);
	kind->done++;
	if (sb && sandbox_destroy(sb, r < 0 ? &other : err) < 0)
		r = -1;
	sandbox_free(sb);
	return r < 0 ? err_ctx(err, "%s (%s, %s)", kind->name, spec.no_pool ? "cold" : "pool",
			       spec.store == KEEPER_STORE_DISK ? "disk" : "memory")
		     : 0;
}

int cycle_warm_up(struct soak *s, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;
	int r;

	if (one_shot(s, err) < 0)
		return -1;
	if (s->has_disk)
		spec.store = KEEPER_STORE_DISK;
	if (sandbox_new(s->keeper, &spec, &sb, err) < 0)
		return -1;
	r = do_echo(s, &sb, err);
	if (r == 0)
		r = sandbox_destroy(sb, err);
	sandbox_free(sb);
	return r;
}
