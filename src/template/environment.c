/* SPDX-License-Identifier: Apache-2.0 */
/* Captures the environment of a template in a sandbox made for that purpose. */
#include "template/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "sandbox/guest_exec.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/template/template_json.h"
#include "engine/internal.h"
#include "engine/scratch.h"
#include "engine/name_lock.h"
#include "layers/layers.h"
#include "session/capacity.h"
#include "session/session_spec.h"
#include "template/environment_parse.h"
#include "template/templates.h"

enum {
	CAPACITY_MS = 10000,
	CAPTURE_MS = 20000,
	POLL_MS = 200,
	LOG_BYTES = 256 << 10,
	OS_RELEASE_MAX = 4096,
};

void environment_fini(struct environment *v)
{
	store_environment_fini(&v->record);
}

/* ---- version of the template ------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t sum, const void *bytes, size_t len)
{
	for (const unsigned char *b = bytes; len; len--, b++)
		sum = (sum ^ *b) * UINT64_C(1099511628211);
	return sum;
}

/* The parts of the host that "host" and its derived templates show, without starting a sandbox. */
static uint64_t hash_host(uint64_t sum)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/lib", "/usr/local/bin" };
	char os[OS_RELEASE_MAX];
	ssize_t n = file_read_at(AT_FDCWD, "/etc/os-release", os, sizeof(os));
	struct stat st;

	if (n > 0)
		sum = hash_bytes(sum, os, (size_t)n);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (stat(dirs[i], &st) == 0)
			sum = hash_bytes(sum, &st.st_mtim, sizeof(st.st_mtim));
	return sum;
}

static int compute_version(const char *name, const struct template *t, char ret[STORE_WORD],
			   struct err *err)
{
	uint64_t sum = hash_bytes(UINT64_C(14695981039346656037), name, strlen(name));
	auto_free char *text = NULL;
	struct utsname u;

	if (template_print(t, &text, err) < 0)
		return -1;
	sum = hash_bytes(sum, text, strlen(text));
	if (uname(&u) == 0)
		sum = hash_bytes(sum, u.release, strlen(u.release));
	if (t->layer || template_is_builtin(name))
		sum = hash_host(sum);
	snprintf(ret, STORE_WORD, "%016llx", (unsigned long long)sum);
	return 0;
}

static int get_record(struct engine *e, const char *name, const struct template *t,
		      struct environment *ret, struct err *err)
{
	struct environment v = { 0 };
	char version[STORE_WORD];

	if (compute_version(name, t, version, err) < 0)
		return -1;
	if (STORE_CALL(e, store_environment_get, name, &v.record, err) < 0)
		return -1;
	v.current = strcmp(v.record.version, version) == 0;
	*ret = v;
	return 0;
}

int environment_get(struct engine *e, const char *template, struct environment *ret,
		    struct err *err)
{
	auto_fini(template_fini) struct template t;

	if (template_load_existing(e, template, &t, err) < 0)
		return -1;
	if (get_record(e, template, &t, ret, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND
		       ? err_set(err, ERR_NOT_FOUND,
				 "environment of template \"%s\" is not recorded yet; "
				 "POST to this URL to record it",
				 template)
		       : -1;
}

/* ---- running the script ------------------------------------------------------------------ */

/* Leaves the warm pool to sessions. A sandbox with layers must keep its files. */
static int create_sandbox(struct engine *e, const char *name, const struct template *t,
			  struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct store_session like = { 0 };
	char ids[KEEPER_LAYERS_MAX][STORE_ID], base[STORE_ID];
	const char *names[KEEPER_LAYERS_MAX];

	snprintf(like.template, sizeof(like.template), "%s", name);
	snprintf(like.layer, sizeof(like.layer), "%s", t->layer ? t->layer : "");
	if (template_apply(t, &spec, err) < 0 || spec_base(e, &like, base, err) < 0 ||
	    (t->layer && layers_list_stack(e, t->layer, ids, &spec.nlayers, err) < 0))
		return -1;
	for (size_t i = 0; i < spec.nlayers; i++)
		names[i] = ids[i];
	spec.template = base;
	spec.no_pool = true;
	if (spec.nlayers) {
		spec.layers = names;
		spec.keep = true;
		spec.store = KEEPER_STORE_DISK;
	}
	return scratch_create(e, &spec, NULL, ret, err);
}

static bool is_closing(struct engine *e)
{
	bool ends;

	pthread_mutex_lock(&e->workers.mutex);
	ends = e->workers.stopping;
	pthread_mutex_unlock(&e->workers.mutex);
	return ends;
}

static int wait_exec(struct engine *e, struct guest_exec *x, struct err *err)
{
	int64_t until = clock_mono_ms() + CAPTURE_MS;
	int r;

	do
		r = guest_exec_wait(x, POLL_MS, err);
	while (r < 0 && err->code == ERR_TIMEOUT && clock_mono_ms() < until && !is_closing(e));
	return r;
}

/* Runs the script as a session would run a command and returns its output. */
static int run_script(struct engine *e, struct sandbox *sb, const struct template *t,
		      const char *script, const char *marker, struct guest_exec_output *ret,
		      struct err *err)
{
	const char *const argv[] = { "/bin/sh", "-c", script, "sh", marker, NULL };
	struct guest_exec_spec spec = { .argv = argv,
					.env = (const char *const *)t->env,
					.cwd = t->workdir,
					.user = t->user,
					.timeout_ms = CAPTURE_MS,
					.log_bytes = LOG_BYTES };
	auto_call(guest_exec_free) struct guest_exec *x = NULL;

	if (guest_exec_begin(sb, &spec, &x, err) < 0)
		return -1;
	if (wait_exec(e, x, err) < 0)
		return guest_exec_state(x) == GUEST_EXEC_FAILED && err->sys == ENOENT
			       ? err_set(err, ERR_CONFLICT,
					 "cannot capture the environment: the template has no "
					 "/bin/sh")
			       : -1;
	if (guest_exec_collect(x, ret, err) < 0)
		return -1;
	if (ret->result.code == 0 && !ret->result.hits)
		return 0;
	guest_exec_output_fini(ret);
	return err_set(err, ERR_UNAVAILABLE,
		       "the script that captures the environment failed; try again");
}

/* Programs in the template may interfere with the script, so a second, simpler script must give the
 * same output. */
static int verify(struct engine *e, struct sandbox *sb, const struct template *t,
		  const char *marker, const char *output, struct err *err)
{
	static const char script[] = "printf '%s pwd\\n' \"$1\"; pwd; "
				     "printf '%s kernel\\n' \"$1\"; uname -srm; "
				     "printf '%s os\\n' \"$1\"";
	struct guest_exec_output o;
	int r = 0;

	if (run_script(e, sb, t, script, marker, &o, err) < 0)
		return -1;
	if (o.out_len < 2 || strncmp(output, o.out, o.out_len - 1) != 0)
		r = err_set(err, ERR_UNAVAILABLE,
			    "two captures of the environment differ; try again");
	guest_exec_output_fini(&o);
	return r;
}

static int read_environment(struct engine *e, struct sandbox *sb, const struct template *t,
			    char **ret, struct err *err)
{
	char marker[STORE_ID];
	struct guest_exec_output o;
	int r;

	if (id_generate("environment-", marker, err) < 0 ||
	    run_script(e, sb, t, environment_script, marker, &o, err) < 0)
		return -1;
	r = verify(e, sb, t, marker, o.out, err);
	if (r == 0)
		r = environment_parse(o.out, o.out_len, marker, ret, err);
	guest_exec_output_fini(&o);
	return r;
}

/* ---- capturing --------------------------------------------------------------------------- */

static int capture(struct engine *e, const char *name, const struct template *t, struct err *err)
{
	struct store_environment v = { .captured_at = engine_now(e) };
	struct sandbox *sb;
	int r;

	snprintf(v.template, sizeof(v.template), "%s", name);
	if (compute_version(name, t, v.version, err) < 0 ||
	    create_sandbox(e, name, t, &sb, err) < 0)
		return -1;
	r = read_environment(e, sb, t, &v.data, err);
	if (r == 0)
		r = STORE_CALL(e, store_environment_put, &v, err);
	scratch_destroy(e, sb);
	store_environment_fini(&v);
	return r;
}

void environment_lock(struct engine *e, struct name_lock *l, const char *template)
{
	name_lock(e, l, "environment", NULL, template);
}

int environment_capture(struct engine *e, const char *template, struct environment *ret,
			struct err *err)
{
	auto_fini(template_fini) struct template t;
	struct name_lock lock;
	int r;

	template_init(&t);
	if (capacity_acquire(e, CAPACITY_MS, err) < 0)
		return -1;
	environment_lock(e, &lock, template);
	r = template_load_existing(e, template, &t, err);
	if (r == 0)
		r = capture(e, template, &t, err);
	if (r == 0)
		r = get_record(e, template, &t, ret, err);
	name_unlock(&lock);
	capacity_release(e);
	return r;
}

/* ---- automatic --------------------------------------------------------------------------- */

/* A failure is not retried: a POST or a change of the template starts the next attempt. Takes no
 * capacity, because environment_sweep() found some free and the capture is short. */
static void capture_in_background(struct engine *e, void *arg)
{
	auto_free char *name = arg;
	struct environment v = { 0 };
	struct name_lock lock;
	struct template t;
	struct err ignored;

	environment_lock(e, &lock, name);
	if (template_load_existing(e, name, &t, &ignored) == 0) {
		bool is_current = get_record(e, name, &t, &v, &ignored) == 0 && v.current;

		environment_fini(&v);
		if (!is_current)
			(void)capture(e, name, &t, &ignored);
	}
	template_fini(&t);
	name_unlock(&lock);
	pthread_mutex_lock(&e->mutex);
	e->environments.capturing = false;
	pthread_mutex_unlock(&e->mutex);
}

void environment_sweep(struct engine *e)
{
	char *name = NULL;
	struct err ignored;

	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->environments.items) && !name; i++) {
		if (!e->environments.items[i].due || e->environments.capturing ||
		    (e->opts.max_active && e->capacity.active >= e->opts.max_active))
			continue;
		name = strdup(e->environments.items[i].template);
		e->environments.items[i].due = !name;
	}
	e->environments.capturing |= name != NULL;
	pthread_mutex_unlock(&e->mutex);
	if (!name || engine_post(e, capture_in_background, name, &ignored) == 0)
		return;
	free(name);
	pthread_mutex_lock(&e->mutex);
	e->environments.capturing = false;
	pthread_mutex_unlock(&e->mutex);
}

void environment_delete(struct engine *e, const char *template)
{
	struct err ignored; /* a new template of this name has another version */

	WITH_STORE(e, st)
	(void)store_environment_remove(st, template, &ignored);
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->environments.items); i++)
		if (strcmp(e->environments.items[i].template, template) == 0)
			e->environments.items[i] = (struct environment_request){ 0 };
	pthread_mutex_unlock(&e->mutex);
}
