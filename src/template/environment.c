/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a template's sandbox once, so that nobody has to start one to know it. */
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
#include "engine/single_flight.h"
#include "layers/layers.h"
#include "session/capacity.h"
#include "session/session_spec.h"

enum {
	ROOM_MS = 10000,
	TELL_MS = 20000, /* for all that it is asked */
	SLICE_MS = 200,
	LOG_BYTES = 256 << 10,
	FACTS = 4096,
};

DEFINE_AUTO(struct template *, template_fini);

void environment_fini(struct environment *v)
{
	store_environment_fini(&v->found);
}

static int load(struct engine *e, const char *name, struct template *ret, struct err *err)
{
	template_init(ret);
	if (!template_name_is_valid(name) || strlen(name) >= STORE_ID)
		return err_set(err, ERR_NOT_FOUND, "no template \"%.64s\"", name);
	if (template_load(e->home, name, ret, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "no template \"%s\"", name)
					  : -1;
}

/* ---- which state of the template --------------------------------------------------------------
 */

static uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
	for (const unsigned char *b = bytes; len; len--, b++)
		sum = (sum ^ *b) * UINT64_C(1099511628211);
	return sum;
}

/* What lies below "host" and what is made of it, without looking into a sandbox. */
static uint64_t mix_host(uint64_t sum)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/lib", "/usr/local/bin" };
	char facts[FACTS];
	ssize_t n = file_read_at(AT_FDCWD, "/etc/os-release", facts, sizeof(facts));
	struct stat st;

	if (n > 0)
		sum = mix(sum, facts, (size_t)n);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (stat(dirs[i], &st) == 0)
			sum = mix(sum, &st.st_mtim, sizeof(st.st_mtim));
	return sum;
}

static int version_of(const char *name, const struct template *t, char ret[STORE_WORD],
		      struct err *err)
{
	uint64_t sum = mix(UINT64_C(14695981039346656037), name, strlen(name));
	auto_free char *text = NULL;
	struct utsname u;

	if (template_print(t, &text, err) < 0)
		return -1;
	sum = mix(sum, text, strlen(text));
	if (uname(&u) == 0)
		sum = mix(sum, u.release, strlen(u.release));
	if (t->layer || template_is_builtin(name))
		sum = mix_host(sum);
	snprintf(ret, STORE_WORD, "%016llx", (unsigned long long)sum);
	return 0;
}

static int get(struct engine *e, const char *name, const struct template *t,
	       struct environment *ret, struct err *err)
{
	struct environment v = { 0 };
	char version[STORE_WORD];
	int r = -1;

	if (version_of(name, t, version, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = st->environment->get(st, name, &v.found, err);
	if (r < 0)
		return -1;
	v.current = strcmp(v.found.version, version) == 0;
	*ret = v;
	return 0;
}

int environment_get(struct engine *e, const char *template, struct environment *ret,
		    struct err *err)
{
	struct template t;
	auto_call(template_fini) struct template *guard = &t;

	(void)guard;
	if (load(e, template, &t, err) < 0)
		return -1;
	if (get(e, template, &t, ret, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND
		       ? err_set(err, ERR_NOT_FOUND,
				 "nobody looked into a sandbox of template \"%s\" yet: "
				 "POST here does",
				 template)
		       : -1;
}

/* ---- asking a sandbox -------------------------------------------------------------------------
 */

/* Nobody's slot of the pool is taken for it. Layers can only be had with files that are kept. */
static int make(struct engine *e, const char *name, const struct template *t, struct sandbox **ret,
		struct err *err)
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

static bool is_ending(struct engine *e)
{
	bool ends;

	pthread_mutex_lock(&e->work_mutex);
	ends = e->work_ends;
	pthread_mutex_unlock(&e->work_mutex);
	return ends;
}

static int await(struct engine *e, struct guest_exec *x, struct err *err)
{
	int64_t until = clock_mono_ms() + TELL_MS;
	int r;

	do
		r = guest_exec_wait(x, SLICE_MS, err);
	while (r < 0 && err->code == ERR_TIMEOUT && clock_mono_ms() < until && !is_ending(e));
	return r;
}

/* As a command of a session runs; what it wrote, if all went well. */
static int ask(struct engine *e, struct sandbox *sb, const struct template *t, const char *script,
	       const char *marker, struct guest_exec_output *ret, struct err *err)
{
	const char *const argv[] = { "/bin/sh", "-c", script, "sh", marker, NULL };
	struct guest_exec_spec spec = { .argv = argv,
					.env = (const char *const *)t->env,
					.cwd = t->workdir,
					.user = t->user,
					.timeout_ms = TELL_MS,
					.log_bytes = LOG_BYTES };
	auto_call(guest_exec_free) struct guest_exec *x = NULL;

	if (guest_exec_begin(sb, &spec, &x, err) < 0)
		return -1;
	if (await(e, x, err) < 0)
		return guest_exec_state(x) == GUEST_EXEC_FAILED && err->sys == ENOENT
			       ? err_set(err, ERR_CONFLICT, "the template has no /bin/sh to ask")
			       : -1;
	if (guest_exec_collect(x, ret, err) < 0)
		return -1;
	if (ret->result.code == 0 && !ret->result.hits)
		return 0;
	guest_exec_output_fini(ret);
	return err_set(err, ERR_UNAVAILABLE, "the sandbox could not tell its environment");
}

/* What was told is believed only if a second, plain question gets the same answer. */
static int verify(struct engine *e, struct sandbox *sb, const struct template *t,
		  const char *marker, const char *told, struct err *err)
{
	static const char script[] = "printf '%s pwd\\n' \"$1\"; pwd; "
				     "printf '%s kernel\\n' \"$1\"; uname -srm; "
				     "printf '%s os\\n' \"$1\"";
	struct guest_exec_output o;
	int r = 0;

	if (ask(e, sb, t, script, marker, &o, err) < 0)
		return -1;
	if (o.out_len < 2 || strncmp(told, o.out, o.out_len - 1) != 0)
		r = err_set(err, ERR_UNAVAILABLE, "the sandbox told its environment in two ways");
	guest_exec_output_fini(&o);
	return r;
}

static int interview(struct engine *e, struct sandbox *sb, const struct template *t, char **ret,
		     struct err *err)
{
	char marker[STORE_ID];
	struct guest_exec_output o;
	int r;

	if (id_generate("environment-", marker, err) < 0 ||
	    ask(e, sb, t, environment_script, marker, &o, err) < 0)
		return -1;
	r = verify(e, sb, t, marker, o.out, err);
	if (r == 0)
		r = environment_read(o.out, o.out_len, marker, ret, err);
	guest_exec_output_fini(&o);
	return r;
}

/* ---- capturing --------------------------------------------------------------------------------
 */

static int capture(struct engine *e, const char *name, const struct template *t, struct err *err)
{
	struct store_environment v = { .captured_at = engine_now(e) };
	struct sandbox *sb;
	int r = -1;

	snprintf(v.template, sizeof(v.template), "%s", name);
	if (version_of(name, t, v.version, err) < 0 || make(e, name, t, &sb, err) < 0)
		return -1;
	if (interview(e, sb, t, &v.data, err) == 0)
		WITH_STORE(e, st)
	r = st->environment->put(st, &v, err);
	scratch_destroy(e, sb);
	store_environment_fini(&v);
	return r;
}

static void turn_of(const char *name, char ret[STORE_KEY])
{
	snprintf(ret, STORE_KEY, "environment:%.*s", STORE_ID - 1, name);
}

void environment_hold(struct engine *e, const char *template)
{
	char turn[STORE_KEY];

	turn_of(template, turn);
	name_lock(e, turn);
}

void environment_release(struct engine *e, const char *template)
{
	char turn[STORE_KEY];

	turn_of(template, turn);
	name_unlock(e, turn);
}

int environment_capture(struct engine *e, const char *template, struct environment *ret,
			struct err *err)
{
	struct template t;
	auto_call(template_fini) struct template *guard = &t;
	int r;

	(void)guard;
	template_init(&t);
	if (capacity_acquire(e, ROOM_MS, err) < 0)
		return -1;
	environment_hold(e, template);
	r = load(e, template, &t, err);
	if (r == 0)
		r = capture(e, template, &t, err);
	if (r == 0)
		r = get(e, template, &t, ret, err);
	environment_release(e, template);
	capacity_release(e);
	return r;
}

/* ---- by itself --------------------------------------------------------------------------------
 */

/* Once: what does not work is asked for by hand, or when the template says something else. It
 * counts nobody's room: there was some, and it is over in a moment. */
static void look(struct engine *e, void *arg)
{
	auto_free char *name = arg;
	struct environment v = { 0 };
	struct template t;
	struct err ignored;

	environment_hold(e, name);
	if (load(e, name, &t, &ignored) == 0) {
		bool known = get(e, name, &t, &v, &ignored) == 0 && v.current;

		environment_fini(&v);
		if (!known)
			(void)capture(e, name, &t, &ignored);
	}
	template_fini(&t);
	environment_release(e, name);
	pthread_mutex_lock(&e->mutex);
	e->looking = false;
	pthread_mutex_unlock(&e->mutex);
}

void environment_sweep(struct engine *e)
{
	char *name = NULL;
	struct err ignored;

	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->environment_requests) && !name; i++) {
		if (!e->environment_requests[i].due || e->looking ||
		    (e->opts.max_active && e->active >= e->opts.max_active))
			continue;
		name = strdup(e->environment_requests[i].template);
		e->environment_requests[i].due = !name;
	}
	e->looking |= name != NULL;
	pthread_mutex_unlock(&e->mutex);
	if (!name || engine_post(e, look, name, &ignored) == 0)
		return;
	free(name);
	pthread_mutex_lock(&e->mutex);
	e->looking = false;
	pthread_mutex_unlock(&e->mutex);
}

void environment_drop(struct engine *e, const char *template)
{
	struct err ignored; /* of another state, should there be one of this name again */

	WITH_STORE(e, st)
	(void)st->environment->remove(st, template, &ignored);
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->environment_requests); i++)
		if (strcmp(e->environment_requests[i].template, template) == 0)
			e->environment_requests[i] = (struct environment_request){ 0 };
	pthread_mutex_unlock(&e->mutex);
}
