/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of kept files and layers, with a real keeper and either kind of storage. They
 * need $LODGE_BUILD (meson sets it) and a machine where sandboxes work. */
#ifndef LODGE_TESTS_LAYER_WORDS_H
#define LODGE_TESTS_LAYER_WORDS_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/layer_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"
#include "tap.h"
#include "tmp_name.h"

#define LAYER(name) ((const char *const[]){ name })

enum { TRIES = 100000 }; /* of a millisecond each */

static char home[TMP_NAME_SIZE], program[4096];
static struct keeper_client *keeper;
static bool on_volume;
static struct err err;
static const char *why_not;
static bool can_freeze;

#define KEEPER()                                                                                   \
	if (why_not)                                                                               \
	SKIP(why_not)

#define FREEZER()                                                                                  \
	if (!can_freeze)                                                                           \
	SKIP("needs cgroups")

/* ---- helpers --------------------------------------------------------------------------------- */

static inline int start_keeper(bool oneshot)
{
	struct keeper_client_opts how = { .program = program, .home = home, .oneshot = oneshot };

	keeper = NULL;
	return keeper_client_spawn(&how, &keeper, &err);
}

static inline bool restart_keeper(void)
{
	keeper_client_free(keeper);
	return start_keeper(false) == 0;
}

static inline struct sandbox *make(const char *id, const char *const *layers, size_t n, bool take)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;

	spec.id = id;
	spec.store = KEEPER_STORE_DISK;
	spec.keep = true;
	spec.layers = layers;
	spec.nlayers = n;
	spec.take = take;
	/* an earlier one of that name may need longer to end than the keeper waits */
	for (int i = 0; i < TRIES && sandbox_new(keeper, &spec, &sb, &err) < 0; i++)
		if (err.sys != EBUSY || !strstr(err.msg, "is still being removed"))
			break;
	return sb;
}

static inline bool says(struct sandbox *sb, const char *text, const char *want)
{
	struct guest_exec_spec spec = { .text = text, .timeout_ms = 120000 };
	struct guest_exec_output o;
	bool same;

	if (!sb || guest_exec_run(sb, &spec, NULL, 0, &o, &err) < 0) {
		printf("# %s\n", err.msg);
		return false;
	}
	same = !strcmp(o.out, want);
	if (!same)
		printf("# got '%s', want '%s'\n", o.out, want);
	guest_exec_output_fini(&o);
	return same;
}

/* Runs in a kept sandbox that is stopped at once. */
static inline bool write_and_stop(const char *id, const char *text)
{
	auto_call(sandbox_free) struct sandbox *sb = make(id, NULL, 0, false);
	bool found = false;

	return says(sb, text, "") && layer_stop(keeper, id, &found, &err) == 0 && found;
}

static inline bool seal(const char *id, const char *layer)
{
	bool whole = !on_volume;

	for (int i = 0; i < TRIES; i++) {
		if (layer_seal(keeper, id, layer, &whole, &err) == 0)
			return whole == on_volume;
		if (err.code != ERR_UNAVAILABLE || err.sys != EBUSY)
			break;
		usleep(1000);
	}
	printf("# %s\n", err.msg);
	return false;
}

static inline int destroy(const char *id)
{
	struct keeper_request r = keeper_client_request(KEEPER_DESTROY, id);
	struct keeper_reply reply;

	return keeper_client_call(keeper, &r, NULL, 0, &reply, NULL, &err) < 0 ? -1
									       : (int)reply.found;
}

static inline int wait_job(const char *name, uint64_t *bytes)
{
	struct keeper_job job = { .state = KEEPER_JOB_RUNNING };

	for (int i = 0; i < TRIES && job.state == KEEPER_JOB_RUNNING; i++) {
		usleep(1000);
		if (layer_job(keeper, name, &job, &err) < 0)
			return -1;
	}
	if (bytes)
		*bytes = job.bytes;
	return job.state == KEEPER_JOB_DONE ? 0 : -1;
}

struct look {
	enum keeper_what what;
	const char *id;
	int found;
};

static inline int look_at(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	struct look *l = arg;

	l->found += what == l->what && (!l->id || !strcmp(id, l->id)) &&
		    (pid > 0) == (what == KEEPER_IS_SANDBOX);
	return 0;
}

/* The number of such entries; id NULL: with any name. */
static inline int listed(enum keeper_what what, const char *id)
{
	struct look l = { what, id, 0 };

	return keeper_client_list(keeper, look_at, &l, &err) < 0 ? -1 : l.found;
}

static inline bool becomes(enum keeper_what what, const char *id)
{
	for (int i = 0; i < TRIES && listed(what, id) != 1; i++)
		usleep(1000);
	return listed(what, id) == 1;
}

static inline bool snap(const char *id, const char *layer)
{
	struct keeper_job job = { 0 };
	bool whole = !on_volume;

	if (layer_snap(keeper, id, layer, &whole, &job, &err) < 0 || whole != on_volume)
		return false;
	return job.state == KEEPER_JOB_DONE || wait_job(layer, NULL) == 0;
}

/* ---- delayed jobs ---------------------------------------------------------------------------- */

static char hold[TMP_NAME_SIZE + 8];

/* Keepers started from now on delay their jobs while the file exists. */
static inline void prepare_hold(void)
{
	char value[sizeof(hold) + 16];

	snprintf(hold, sizeof(hold), "%s.hold", home);
	snprintf(value, sizeof(value), "job:start=%s", hold);
	setenv("LODGE_HOLD_AT", value, 1);
}

static inline bool hold_jobs(void)
{
	int fd = open(hold, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static inline void let_jobs_go(void)
{
	(void)unlink(hold);
}

#ifdef LODGE_TEST_HOOKS
#define HOLD_JOBS() CHECK(hold_jobs())
#else
#define HOLD_JOBS() SKIP("needs -Dtest_hooks=true")
#endif

/* ---- cleaning up ----------------------------------------------------------------------------- */

struct remains {
	size_t n;
	struct {
		enum keeper_what what;
		char id[KEEPER_ID_SIZE];
	} of[64];
};

static inline int note_remain(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	struct remains *r = arg;

	(void)pid;
	if (r->n == sizeof(r->of) / sizeof(r->of[0]))
		return 0;
	r->of[r->n].what = what;
	snprintf(r->of[r->n++].id, KEEPER_ID_SIZE, "%s", id);
	return 0;
}

/* Removes what a failed test created, so that the next one does not fail too. */
static inline void remove_remains(void)
{
	struct remains r = { 0 };

	let_jobs_go();
	if (!keeper && start_keeper(false) < 0)
		return;
	if (keeper_client_list(keeper, note_remain, &r, &err) < 0)
		return;
	for (size_t i = 0; i < r.n; i++)
		if (r.of[i].what != KEEPER_IS_LAYER)
			(void)destroy(r.of[i].id);
	for (size_t i = 0; i < r.n; i++)
		if (r.of[i].what == KEEPER_IS_LAYER)
			(void)layer_drop(keeper, r.of[i].id, &err);
}

#define RUN_LAYERS(fn) run_layers(fn, #fn)
static inline void run_layers(void (*fn)(void), const char *name)
{
	tap_run(fn, name);
	let_jobs_go();
	if (!tap_ok)
		remove_remains();
}

static inline void nothing_is_left(void)
{
	char path[128];

	KEEPER();
	CHECK(listed(KEEPER_IS_SANDBOX, NULL) == 0 && listed(KEEPER_IS_FILES, NULL) == 0 &&
	      listed(KEEPER_IS_LAYER, NULL) == 0);
	keeper_client_free(keeper);
	keeper = NULL;
	snprintf(path, sizeof(path), "%s/store", home);
	CHECK(on_volume || rmdir(path) == 0);
}

static inline void in_store(bool volume, void (*run)(void))
{
	const char *build = getenv("LODGE_BUILD");
	char store[128];
	unsigned features = 0;
	bool ready;

	on_volume = volume;
	snprintf(program, sizeof(program), "%s/lodge-keeper", build ? build : "build");
	ready = mkdtemp(tmp_name(home, "lodge-layer")) != NULL &&
		snprintf(store, sizeof(store), "%s/store", home) > 0;
	prepare_hold();
	ready = ready && (volume || mkdir(store, 0700) == 0) && start_keeper(false) == 0;
	ready = ready && keeper_client_features(keeper, &features, &err) == 0;
	can_freeze = features & KEEPER_HAS_KILL;
	why_not = ready ? NULL : "needs a machine where sandboxes work";
	if (ready && volume && !(features & KEEPER_HAS_DISK_LIMIT))
		why_not = "needs a volume";
	run();
	RUN(nothing_is_left);
	keeper_client_free(keeper);
	keeper = NULL;
	if (ready)
		file_remove_tree_at(AT_FDCWD, home);
}

#endif
