/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a process of its own, for tests that kill it, start it again and look from outside.
 * One JSON object per line in, one out, matched by "id"; each request runs in its own thread.
 *
 *   {"id": 1, "op": "enter", "key": "k"}  ->  {"id": 1, "ok": true, "session": {...}, ...}
 *                                             {"id": 1, "error": {"code": "LIMIT", ...}} */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "base/array.h"
#include "sandbox/files_client.h"
#include "engine/internal.h"
#include "exec/exec_lookup.h"
#include "engine/keeper_conn.h"
#include "engine/keeper_listing.h"
#include "layers/layers.h"
#include "service/timers.h"
#include "engine/session_state.h"
#include "session/capacity.h"
#include "session/session_api.h"
#include "service/engine_open.h"
#include "../unit/count_writes.h"

struct engine *engine;
const struct caller caller = { "test", "driver" };

static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t clock_shift;
static atomic_int under_way;

static int64_t shifted(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + clock_shift;
}

/* ---- values ---------------------------------------------------------------------------------- */

const char *str(const json_t *q, const char *key)
{
	return json_string_value(json_object_get(q, key));
}

int64_t num(const json_t *q, const char *key)
{
	return json_integer_value(json_object_get(q, key));
}

bool flag(const json_t *q, const char *key)
{
	return json_is_true(json_object_get(q, key));
}

struct session_ref ref_of(const json_t *q)
{
	return (struct session_ref){ .id = str(q, "session"),
				     .kind = str(q, "kind"),
				     .key = str(q, "key") };
}

json_t *bytes(const void *data, size_t len)
{
	json_t *s = json_stringn(data, len);
	char *hex;

	if (s)
		return s;
	hex = malloc(2 * len + 5);
	strcpy(hex, "hex:");
	for (size_t i = 0; i < len; i++)
		sprintf(hex + 4 + 2 * i, "%02x", ((const unsigned char *)data)[i]);
	s = json_string(hex);
	free(hex);
	return s;
}

static const char *code_name(enum err_code c)
{
	static const char *const names[] = { "NONE",	 "INVALID",	"NOT_FOUND",
					     "CONFLICT", "DENIED",	"LIMIT",
					     "TIMEOUT",	 "UNAVAILABLE", "INTERNAL" };

	return c < ARRAY_LEN(names) ? names[c] : "?";
}

json_t *session_json(const struct store_session *s)
{
	return json_pack(
		"{s:s, s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:s, "
		"s:s, s:s, s:s}",
		"id", s->id, "state", state_machine_name(&session_states, s->state), "runtime",
		(int)s->runtime, "version", (json_int_t)s->version, "generation",
		(json_int_t)s->generation, "incarnation", (json_int_t)s->incarnation, "sandbox",
		s->sandbox, "layer", s->layer, "snapshot", s->snapshot, "hibernate_at",
		(json_int_t)s->hibernate_at, "expires_at", (json_int_t)s->expires_at,
		"last_activity_at", (json_int_t)s->last_activity_at, "due_at",
		(json_int_t)s->due_at, "paused", s->paused, "cause", s->cause.code, "cause_text",
		s->cause.text, "user", s->user, "project", s->project);
}

json_t *snapshot_json(const struct store_snapshot *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:I}", "id", s->id, "session", s->session, "name",
			 s->name, "layer", s->layer, "generation", (json_int_t)s->generation);
}

static json_t *entered_json(const struct session_enter_result *r)
{
	static const char *const outcomes[] = { "?", "created", "reused", "resumed", "replaced" };
	static const char *const sources[] = { "none", "pool", "cold", "resume", "fork" };

	return json_pack("{s:o, s:s, s:s, s:b, s:s}", "session", session_json(&r->session),
			 "outcome", outcomes[r->outcome], "source", sources[r->source],
			 "state_lost", r->state_lost, "cause", r->cause.code);
}

json_t *record(int r, struct store_session *s)
{
	json_t *a;

	if (r < 0)
		return NULL;
	a = json_pack("{s:o}", "session", session_json(s));
	store_session_fini(s);
	return a;
}

/* ---- sessions -------------------------------------------------------------------------------- */

json_t *op_enter(const json_t *q, struct err *err)
{
	struct store_binding key = { .kind = "key" };
	struct session_opts w = {
		.user = str(q, "user"),
		.template = str(q, "template"),
		.snapshot = str(q, "snapshot"),
		.pin = str(q, "pin"),
		.idempotency_key = str(q, "once"),
		.metadata = str(q, "metadata"),
		.must_be_new = flag(q, "must_be_new"),
		.no_start = flag(q, "asleep"),
		.idle_timeout_ms = num(q, "idle_ms"),
		.max_lifetime_ms = num(q, "lifetime_ms"),
		.on_idle = flag(q, "idle_destroys") ? SESSION_END_DESTROY : SESSION_END_HIBERNATE,
		.max_active_per_user = (unsigned)num(q, "per_user"),
		.on_exceed = flag(q, "replace") ? SESSION_EXCEED_REPLACE : SESSION_EXCEED_REFUSE,
		.wait_ms = num(q, "wait_ms")
	};
	struct session_enter_result r;
	struct template over;
	json_t *a;
	int done;

	if (str(q, "key")) {
		snprintf(key.key, sizeof(key.key), "%s", str(q, "key"));
		if (str(q, "kind"))
			snprintf(key.kind, sizeof(key.kind), "%s", str(q, "kind"));
		w.keys = &key;
		w.nkeys = 1;
	}
	template_init(&over);
	if (str(q, "class")) { /* "root": the guest is uid 0 inside */
		over.class = KEEPER_CLASS_ROOT;
		over.user = strdup("0:0");
		w.overrides = &over;
	}
	done = session_enter(engine, &caller, &w, &r, err);
	template_fini(&over);
	if (done < 0)
		return NULL;
	a = entered_json(&r);
	session_enter_result_fini(&r);
	return a;
}

json_t *op_resume(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct session_enter_result r;
	json_t *a;

	if (session_resume(engine, &caller, &ref, num(q, "if_version"), &r, err) < 0)
		return NULL;
	a = entered_json(&r);
	session_enter_result_fini(&r);
	return a;
}

json_t *op_get(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_session s;

	return record(session_get(engine, &caller, &ref, &s, err), &s);
}

typedef int change_fn(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);

json_t *op_change(const json_t *q, struct err *err)
{
	static const struct {
		const char *op;
		change_fn *fn;
	} all[] = {
		{ "pause", session_pause },	    { "unpause", session_unpause },
		{ "hibernate", session_hibernate }, { "archive", session_archive },
		{ "unarchive", session_unarchive },
	};
	struct session_ref ref = ref_of(q);
	struct store_session s;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i].op, str(q, "op")) == 0)
			return record(
				all[i].fn(engine, &caller, &ref, num(q, "if_version"), &s, err),
				&s);
	return NULL;
}

json_t *op_extend(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_session s;

	return record(session_extend(engine, &caller, &ref, num(q, "ms"), num(q, "if_version"),
				     NULL, &s, err),
		      &s);
}

json_t *op_activity(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_session s;

	return record(session_activity(engine, &caller, &ref, &s, err), &s);
}

json_t *op_destroy(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_tombstone t;

	if (session_destroy(engine, &caller, &ref, NULL, &t, err) < 0)
		return NULL;
	return json_pack("{s:s, s:s}", "session", t.session, "cause", t.cause.code);
}

json_t *op_list(const json_t *q, struct err *err)
{
	struct store_session_filter f = { .tenant = caller.tenant, .user = str(q, "user") };
	struct store_page page = { .limit = STORE_PAGE_MAX };
	struct store_session_list l;
	json_t *a = json_array();

	if (session_list(engine, &f, page, &l, err) < 0) {
		json_decref(a);
		return NULL;
	}
	for (size_t i = 0; i < l.count; i++)
		json_array_append_new(a, session_json(&l.items[i]));
	store_session_list_fini(&l);
	return json_pack("{s:o}", "sessions", a);
}

json_t *op_probe(const json_t *q, struct err *err)
{
	static const char *const names[] = { "?", "connected", "unsure", "expired", "no_sandbox" };
	struct session_ref ref = ref_of(q);
	struct session_probe_result p;

	if (session_probe(engine, &caller, &ref, num(q, "deadline_ms"), &p, err) < 0)
		return NULL;
	return json_pack("{s:s, s:s}", "answer", names[p.status], "cause", p.cause.code);
}

json_t *op_valid(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);

	(void)err;
	return json_pack("{s:b}", "valid", session_is_valid(engine, &caller, &ref));
}

/* ---- the engine ------------------------------------------------------------------------------ */

json_t *op_sweep(const json_t *q, struct err *err)
{
	(void)q, (void)err;
	return json_pack("{s:i}", "changed", engine_run_timers(engine));
}

/* Layers that nothing refers to. */
json_t *op_collect(const json_t *q, struct err *err)
{
	(void)q, (void)err;
	return json_pack("{s:i}", "removed", timers_collect(engine));
}

json_t *op_facts(const json_t *q, struct err *err)
{
	struct capacity_report r;

	(void)q, (void)err;
	capacity_get_report(engine, &r);
	return json_pack("{s:I, s:i, s:i}", "changes", (json_int_t)count_writes(engine), "active",
			 (int)r.active, "pid", (int)getpid());
}

json_t *op_clock(const json_t *q, struct err *err)
{
	(void)err;
	clock_shift += num(q, "ms");
	return json_object();
}

/* Limits the descriptors of this process. */
json_t *op_nofile(const json_t *q, struct err *err)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return err_sys(err, errno, "getrlimit"), NULL;
	l.rlim_cur = (rlim_t)num(q, "count");
	if (setrlimit(RLIMIT_NOFILE, &l) < 0)
		return err_sys(err, errno, "setrlimit"), NULL;
	return json_object();
}

/* Lists what the keeper has on disk and running. */
json_t *op_kept(const json_t *q, struct err *err)
{
	static const char *const names[] = { "?", "sandbox", "files", "layer" };
	struct keeper_listing l;
	json_t *a = json_array();

	(void)q;
	if (keeper_listing_read(engine, &l, err) < 0) {
		json_decref(a);
		return NULL;
	}
	for (size_t i = 0; i < l.count; i++)
		json_array_append_new(a,
				      json_pack("[s, s]", names[l.items[i].what], l.items[i].id));
	keeper_listing_fini(&l);
	return json_pack("{s:o}", "kept", a);
}

json_t *op_events(const json_t *q, struct err *err)
{
	struct store_event_list l;
	json_t *a = json_array();

	if (engine_events(engine, num(q, "since"), caller.tenant, str(q, "session"), STORE_PAGE_MAX,
			  &l, err) < 0) {
		json_decref(a);
		return NULL;
	}
	for (size_t i = 0; i < l.count; i++)
		json_array_append_new(a, json_pack("{s:I, s:s, s:s, s:s, s:s, s:I}", "id",
						   (json_int_t)l.items[i].id, "session",
						   l.items[i].session, "kind", l.items[i].kind,
						   "cause", l.items[i].cause.code, "actor",
						   l.items[i].cause.actor, "version",
						   (json_int_t)l.items[i].version));
	store_event_list_fini(&l);
	return json_pack("{s:o}", "events", a);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void answer(const json_t *q, json_t *a, const struct err *err)
{
	char *text;

	if (a)
		json_object_set_new(a, "ok", json_true());
	else
		a = json_pack("{s:{s:s, s:i, s:s}}", "error", "code", code_name(err->code), "sys",
			      err->sys, "msg", err->msg);
	json_object_set(a, "id", json_object_get(q, "id"));
	text = json_dumps(a, JSON_COMPACT);
	pthread_mutex_lock(&out);
	puts(text);
	fflush(stdout);
	pthread_mutex_unlock(&out);
	free(text);
	json_decref(a);
}

static void *serve(void *arg)
{
	json_t *q = arg;
	struct err err = { .code = ERR_INTERNAL, .msg = "no answer" };
	op_fn *fn = op_find(str(q, "op") ? str(q, "op") : "");
	json_t *a = NULL;

	if (fn)
		a = fn(q, &err);
	else
		err_set(&err, ERR_INVALID, "unknown op");
	answer(q, a, &err);
	json_decref(q);
	under_way--;
	return NULL;
}

static void read_requests(void)
{
	pthread_attr_t attr;
	char *line = NULL;
	size_t cap = 0;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 1 << 20);
	while (getline(&line, &cap, stdin) > 0) {
		json_t *q = json_loads(line, 0, NULL);
		pthread_t t;

		if (!q)
			continue;
		under_way++;
		if (pthread_create(&t, &attr, serve, q) != 0)
			serve(q);
	}
	free(line);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "home", 1, NULL, 'h' },	    { "keeper", 1, NULL, 'k' },
		{ "max-active", 1, NULL, 'm' },	    { "no-threads", 0, NULL, 'n' },
		{ "clock", 1, NULL, 'c' },	    { "pool", 1, NULL, 'p' },
		{ "socket", 1, NULL, 's' },	    { "idle-ms", 1, NULL, 'i' },
		{ "keeper-wait-ms", 1, NULL, 'w' }, { 0 },
	};
	struct engine_opts o = { .socket = "unix:/nowhere" };
	struct err err;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'h':
			o.home = optarg;
			break;
		case 'k':
			o.keeper_program = optarg;
			break;
		case 'm':
			o.max_active = (unsigned)atoi(optarg);
			break;
		case 'n':
			o.no_threads = true;
			break;
		case 'c':
			clock_shift = atoll(optarg);
			o.clock = shifted;
			break;
		case 'p':
			o.pool = (unsigned)atoi(optarg);
			break;
		case 's':
			o.socket = optarg;
			break;
		case 'i':
			o.idle_ms = atoll(optarg);
			break;
		case 'w':
			o.keeper_wait_ms = atoll(optarg);
			break;
		default:
			return 2;
		}
	}
	if (engine_open(&o, &engine, &err) < 0) {
		fprintf(stderr, "%s: %s\n", code_name(err.code), err.msg);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	read_requests();
	while (under_way > 0)
		usleep(1000);
	engine_close(engine);
	return 0;
}
