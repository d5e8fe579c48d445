/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, used by a program outside the source tree. The first argument is the home, the second
 * what to do there: without one, run all tests; otherwise one half of a test that needs two
 * processes. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "use_lib.h"

enum { THREADS = 16 };

/* ---- opening --------------------------------------------------------------------------------- */

static void errors_are_reported(void)
{
	struct lodge_options o = { SIZED(lodge_options), .home = "/proc/no/such" };
	struct lodge *l = NULL;

	CHECK(lodge_open(&o, &l) == -1 && !l);
	CHECK(lodge_last_code() != LODGE_OK && NAMES("/proc/no"));
	o.size = 0;
	CHECK(FAILS(lodge_open(&o, &l), LODGE_INVALID) && NAMES("size") && NAMES("lodge_options"));
	o = (struct lodge_options){ SIZED(lodge_options), .home = "/proc/no", .pool = 1025 };
	CHECK(FAILS(lodge_open(&o, &l), LODGE_INVALID) && NAMES("pool: must be at most 1024"));
	o = (struct lodge_options){ SIZED(lodge_options), .idle_ms = 2 * 86400000 };
	CHECK(FAILS(lodge_open(&o, &l), LODGE_INVALID) &&
	      NAMES("idle_ms: 2d is more than idle_max_ms (1d)"));
	CHECK(lodge_version()[0]);
	lodge_close(NULL);
	lodge_free(NULL);
	lodge_exec_close(NULL);
}

/* A program of a later version: fields it sets that this library does not know are refused, unset
 * ones are ignored. */
static void structs_grow(void)
{
	struct {
		struct lodge_filter known;
		uint64_t later;
	} f = { .known = { .size = sizeof(f) }, .later = 1 };
	struct lodge_filter earlier = { .size = offsetof(struct lodge_filter, states),
					.limit = 5000 /* not read */ };
	struct lodge_sessions *list = NULL;

	CHECK(start() == 0);
	CHECK(FAILS(lodge_list(lodge, &f.known, &list), LODGE_INVALID) && NAMES("lodge_filter"));
	f.later = 0;
	CHECK(lodge_list(lodge, &f.known, &list) == 0);
	lodge_free(list);
	CHECK(lodge_list(lodge, &earlier, &list) == 0);
	lodge_free(list);
	earlier.size = sizeof(earlier);
	CHECK(FAILS(lodge_list(lodge, &earlier, &list), LODGE_INVALID));
}

static void a_second_process_is_refused(void)
{
	char cmd[512], line[512] = "", pid[32];
	FILE *f;

	CHECK(start() == 0);
	snprintf(cmd, sizeof(cmd), "exec /proc/%d/exe %s open", (int)getpid(), home);
	f = popen(cmd, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	CHECK(pclose(f) != 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	printf("# %s", line);
	CHECK(strstr(line, pid) && strstr(line, home));
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void a_key_leads_to_one_session(void)
{
	struct lodge_session *first = NULL, *again = NULL, *got = NULL;
	struct lodge_sessions *all = NULL;
	struct lodge_filter f = { SIZED(lodge_filter), .states = 1 << LODGE_STATE_ACTIVE };
	struct lodge_ref by_id = { 0 };
	struct lodge_room *room = NULL;

	CHECK(enter_me(&first) == 0);
	CHECK(first->outcome == LODGE_CREATED && first->state == LODGE_STATE_ACTIVE);
	CHECK(first->runtime == LODGE_RUNTIME_LIVE && first->sandbox[0] && first->incarnation == 1);
	CHECK(first->source == LODGE_SOURCE_COLD || first->source == LODGE_SOURCE_POOL);
	CHECK(first->ready_us > 0 && !first->state_lost && !first->cause && first->version > 0);
	CHECK(first->nkeys == 1 && !strcmp(first->keys[0].kind, "key"));
	CHECK_STR(first->keys[0].key, "me");
	CHECK_STR(first->template_name, "host");
	CHECK(first->on_idle == LODGE_END_HIBERNATE && first->hibernate_at > first->created_at);
	CHECK_STR(lodge_state_name(first->state), "active");
	CHECK(enter_me(&again) == 0 && again->outcome == LODGE_REUSED);
	CHECK_STR(again->id, first->id);
	CHECK_STR(again->sandbox, first->sandbox);
	by_id.id = first->id;
	CHECK(lodge_get(lodge, &by_id, &got) == 0 && got->outcome == 0);
	CHECK(lodge_is_valid(lodge, &by_id) == 1 && lodge_is_valid(lodge, &me) == 1);
	CHECK(lodge_list(lodge, &f, &all) == 0 && all->count == 1 && all->next == 0);
	CHECK_STR(all->items[0]->id, first->id);
	CHECK(lodge_room_get(lodge, &room) == 0 && room->active == 1);
	lodge_free(room);
	lodge_free(all);
	lodge_free(got);
	lodge_free(again);
	lodge_free(first);
}

static void *enter_one(void *arg)
{
	const struct lodge_ref crowd = { .kind = "thread", .key = "crowd" };
	struct lodge_want w = { SIZED(lodge_want), .keys = &crowd, .nkeys = 1, .user = "many" };

	if (lodge_enter(lodge, &w, arg) < 0)
		printf("# %s\n", lodge_last_error());
	return NULL;
}

static void many_threads_get_one_sandbox(void)
{
	const struct lodge_ref crowd = { .kind = "thread", .key = "crowd" };
	struct lodge_session *got[THREADS] = { 0 };
	struct lodge_cleaned *gone = NULL;
	struct lodge_sessions *all = NULL;
	struct lodge_filter f = { SIZED(lodge_filter), .user = "many" };
	pthread_t t[THREADS];

	CHECK(start() == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, enter_one, &got[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		CHECK(got[i]);
		CHECK_STR(got[i]->id, got[0]->id);
		CHECK_STR(got[i]->sandbox, got[0]->sandbox);
		CHECK(got[i]->incarnation == 1);
	}
	CHECK(lodge_list(lodge, &f, &all) == 0 && all->count == 1);
	CHECK(lodge_cleanup(lodge, "many", &gone) == 0);
	CHECK(gone->ndestroyed == 1 && gone->nfailed == 0);
	CHECK_STR(gone->destroyed[0], got[0]->id);
	CHECK(lodge_is_valid(lodge, &crowd) == 0);
	lodge_free(gone);
	lodge_free(all);
	for (int i = 0; i < THREADS; i++)
		lodge_free(got[i]);
}

static void errors_name_the_field(void)
{
	struct lodge_limits limits = { SIZED(lodge_limits), .memory_bytes = 1 };
	struct lodge_want w = { SIZED(lodge_want), .limits = &limits };
	struct lodge_ref nothing = { 0 }, empty = { .key = "" };
	const char *const env[] = { "novalue", NULL };
	char large[1000];
	struct lodge_ref long_key = { .kind = "thread", .key = large };
	struct lodge_session *s = NULL;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	CHECK(start() == 0);
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("memory_bytes"));
	w = (struct lodge_want){ SIZED(lodge_want), .template_name = "no-such" };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_NOT_FOUND) && NAMES("no-such"));
	w = (struct lodge_want){ SIZED(lodge_want), .template_name = "../x" };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("template"));
	w = (struct lodge_want){ SIZED(lodge_want), .metadata = "[1]" };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("metadata"));
	w = (struct lodge_want){ SIZED(lodge_want), .env = env };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("env"));
	w = (struct lodge_want){ SIZED(lodge_want), .keys = &long_key, .nkeys = 1 };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("thread"));
	w = (struct lodge_want){ SIZED(lodge_want), .keys = &empty, .nkeys = 1 };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("key"));
	w = (struct lodge_want){ SIZED(lodge_want), .nkeys = 1 };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("keys"));
	w = (struct lodge_want){ SIZED(lodge_want), .demand = 1u << 30 };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("demand"));
	w = (struct lodge_want){ SIZED(lodge_want), .on_idle = (enum lodge_end)9 };
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_INVALID) && NAMES("on_idle"));
	CHECK(FAILS(lodge_get(lodge, &nothing, &s), LODGE_INVALID) && NAMES("ref"));
	CHECK(FAILS(lodge_get(lodge, NULL, &s), LODGE_INVALID) && !s);
	nothing.id = "ses_nosuch";
	CHECK(FAILS(lodge_get(lodge, &nothing, &s), LODGE_NOT_FOUND) && !lodge_last_errno());
	CHECK(FAILS(lodge_destroy(lodge, &nothing, NULL, NULL), LODGE_NOT_FOUND));
	CHECK(lodge_is_valid(lodge, &nothing) == 0 && lodge_is_valid(lodge, NULL) == 0);
}

static void options_are_applied(void)
{
	const char *const env[] = { "COLOUR=green", NULL };
	struct lodge_limits limits = { SIZED(lodge_limits), .memory_bytes = 64 << 20, .pids = 50 };
	struct lodge_ref keys[2] = { { .key = "a" }, { .kind = "thread", .key = "b" } };
	struct lodge_want w = { SIZED(lodge_want),
				.keys = keys,
				.nkeys = 2,
				.user = "u1",
				.limits = &limits,
				.env = env,
				.workdir = "/tmp",
				.project = "p",
				.metadata = "{\"team\":\"red\"}",
				.idle_timeout_ms = 60000,
				.on_idle = LODGE_END_DESTROY };
	struct lodge_filter red = { SIZED(lodge_filter), .meta_key = "team", .meta_value = "red" };
	struct lodge_sessions *found = NULL;
	struct lodge_session *s = NULL;
	struct lodge_bytes *b = NULL;

	CHECK(start() == 0 && lodge_enter(lodge, &w, &s) == 0);
	CHECK(s->nkeys == 2 && s->idle_timeout_ms == 60000 && s->on_idle == LODGE_END_DESTROY);
	CHECK(s->memory_bytes == 64 << 20 && strstr(s->spec, "COLOUR"));
	CHECK_STR(s->user, "u1");
	CHECK_STR(s->project, "p");
	CHECK(strstr(s->metadata, "red"));
	CHECK(says(&keys[1], "echo $COLOUR; pwd", "green"));
	CHECK(says(&keys[0], "pwd; echo x > here", "/tmp"));
	CHECK(lodge_file_read(lodge, &keys[0], "here", 10, &b) == 0 && b->len == 2);
	lodge_free(b);
	CHECK(lodge_list(lodge, &red, &found) == 0 && found->count == 1);
	CHECK_STR(found->items[0]->id, s->id);
	lodge_free(found);
	w.must_be_new = 1;
	CHECK(FAILS(lodge_enter(lodge, &w, &s), LODGE_CONFLICT));
	lodge_free(s);
	CHECK(lodge_destroy(lodge, &keys[1], NULL, NULL) == 0);
}

static void pause_hibernate_and_resume(void)
{
	struct lodge_session *s = NULL;
	struct lodge_probed *p = NULL;
	struct lodge_limits_state *limits = NULL;
	struct lodge_stats *st = NULL;
	int64_t version;
	int durable = -1;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(says(&me, "echo kept > file; cat file", "kept"));
	CHECK(lodge_probe(lodge, &me, 0, &p) == 0 && p->answer == LODGE_CONNECTED);
	CHECK(p->expires_at > 0);
	lodge_free(p);
	CHECK(lodge_stats_get(lodge, &me, &st) == 0 && st->pids < 10 &&
	      st->output_memory_bytes < 1 << 20);
	lodge_free(st);
	CHECK(lodge_limits_get(lodge, &me, &limits) == 0);
	CHECK(limits->limits->memory_bytes == 512 << 20 && limits->limits->pids == 256);
	/* on disk the number of files is never limited */
	CHECK(limits->not_enforced[0] == '[' && strstr(limits->not_enforced, "\"inodes\""));
	CHECK(strstr(limits->not_enforced, "\"reason\"") &&
	      !strstr(limits->not_enforced, "open_files"));
	lodge_free(limits);
	CHECK(FAILS(lodge_limits_get(lodge, &(struct lodge_ref){ .key = "none" }, &limits),
		    LODGE_NOT_FOUND));
	CHECK(lodge_extend(lodge, &me, 60000, 0, &s) == 0);
	version = s->version;
	lodge_free(s);
	CHECK(FAILS(lodge_pause(lodge, &me, version + 100, NULL), LODGE_CONFLICT));
	CHECK(lodge_activity(lodge, &me, NULL) == 0);
	CHECK(lodge_pause(lodge, &me, 0, &s) == 0 && s->paused);
	lodge_free(s);
	CHECK(lodge_unpause(lodge, &me, 0, &s) == 0 && !s->paused);
	lodge_free(s);
	CHECK(lodge_hibernate(lodge, &me, 0, &s) == 0 && s->state == LODGE_STATE_HIBERNATED);
	CHECK(s->runtime == LODGE_RUNTIME_RESUMABLE && !s->sandbox[0] && s->generation >= 1);
	lodge_free(s);
	CHECK(lodge_is_valid(lodge, &me) == 0);
	CHECK(lodge_durable(lodge, &me, &durable) == 0 && (durable == 0 || durable == 1));
	CHECK(lodge_probe(lodge, &me, 0, &p) == 0 && p->answer == LODGE_NO_SANDBOX);
	lodge_free(p);
	CHECK(lodge_archive(lodge, &me, 0, &s) == 0 && s->state == LODGE_STATE_ARCHIVED);
	lodge_free(s);
	CHECK(FAILS(lodge_resume(lodge, &me, 0, &s), LODGE_CONFLICT));
	CHECK(lodge_unarchive(lodge, &me, 0, NULL) == 0);
	CHECK(lodge_resume(lodge, &me, 0, &s) == 0 && s->outcome == LODGE_RESUMED);
	CHECK(!s->state_lost && s->incarnation == 2);
	lodge_free(s);
	CHECK(says(&me, "cat file", "kept") && lodge_last_outcome() == LODGE_REUSED);
	CHECK(lodge_hibernate(lodge, &me, 0, NULL) == 0);
	CHECK(says(&me, "cat file", "kept") && lodge_last_outcome() == LODGE_RESUMED);
}

static void preferences_change(void)
{
	struct lodge_limits limits = { SIZED(lodge_limits), .pids = 77 };
	struct lodge_patch p = { SIZED(lodge_patch), .idle_timeout_ms = 120000,
				 .on_expire = LODGE_END_DESTROY, .limits = &limits,
				 .metadata = "{\"a\":\"b\"}" };
	struct lodge_session *s = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_change(lodge, &me, &p, &s) == 0);
	CHECK(s->idle_timeout_ms == 120000 && s->on_expire == LODGE_END_DESTROY);
	CHECK(s->on_idle == LODGE_END_HIBERNATE && strstr(s->metadata, "\"b\""));
	p = (struct lodge_patch){ SIZED(lodge_patch), .if_version = s->version + 1 };
	lodge_free(s);
	CHECK(FAILS(lodge_change(lodge, &me, &p, NULL), LODGE_CONFLICT));
	limits = (struct lodge_limits){ SIZED(lodge_limits), .pids = 1 };
	p = (struct lodge_patch){ SIZED(lodge_patch), .limits = &limits };
	CHECK(FAILS(lodge_change(lodge, &me, &p, NULL), LODGE_INVALID) && NAMES("pids"));
}

/* A session without a key, to be destroyed. */
static void destroyed_sessions_have_a_tombstone(void)
{
	struct lodge_tombstone *t = NULL;
	struct lodge_session *s = NULL;
	struct lodge_events *ev = NULL;
	struct lodge_ref ref = { 0 };

	CHECK(start() == 0 && lodge_enter(lodge, NULL, &s) == 0 && s->nkeys == 0);
	ref.id = s->id;
	CHECK(says(&ref, "echo hello", "hello"));
	CHECK(lodge_destroy(lodge, &ref, "enough of it", &t) == 0);
	CHECK_STR(t->id, s->id);
	CHECK(t->cause && t->cause->at > 0);
	CHECK_STR(t->cause->code, "asked");
	CHECK_STR(t->cause->text, "enough of it");
	CHECK_STR(t->cause->actor, "liblodge");
	lodge_free(t);
	CHECK(lodge_destroy(lodge, &ref, NULL, NULL) == 0);
	CHECK(lodge_tombstone_get(lodge, &ref, &t) == 0);
	CHECK_STR(t->cause->text, "enough of it");
	lodge_free(t);
	t = NULL;
	CHECK(FAILS(lodge_tombstone_get(lodge, &me, &t), LODGE_NOT_FOUND) && !t);
	CHECK(FAILS(lodge_get(lodge, &ref, NULL), LODGE_NOT_FOUND) && lodge_last_errno() == ESTALE);
	CHECK(lodge_events_since(lodge, 0, s->id, 0, &ev) == 0 && ev->count >= 2);
	for (size_t i = 0; i < ev->count; i++) {
		CHECK_STR(ev->items[i]->session, s->id);
		CHECK(ev->items[i]->kind[0] && ev->items[i]->cause);
		CHECK(i == 0 || ev->items[i]->id > ev->items[i - 1]->id);
	}
	lodge_free(ev);
	lodge_free(s);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static void quotas_are_enforced(void)
{
	struct lodge_quota one = { SIZED(lodge_quota), .sandboxes = 1 };
	struct lodge_want w = { SIZED(lodge_want), .user = "greedy" };
	struct lodge_session *first = NULL, *second = NULL;
	struct lodge_usage *u = NULL;

	CHECK(start() == 0 && lodge_quota_set(lodge, "greedy", &one) == 0);
	CHECK(lodge_enter(lodge, &w, &first) == 0);
	CHECK(FAILS(lodge_enter(lodge, &w, &second), LODGE_LIMIT) && NAMES("greedy"));
	CHECK(lodge_quota_get(lodge, "greedy", &u) == 0 && u->quota->sandboxes == 1);
	CHECK(u->active == 1 && u->sessions == 1 && u->memory_bytes > 0);
	lodge_free(u);
	CHECK(lodge_quota_get(lodge, NULL, &u) == 0 && u->quota->sandboxes == 0);
	CHECK(u->active >= 1);
	lodge_free(u);
	one.sandboxes = -1;
	CHECK(FAILS(lodge_quota_set(lodge, "greedy", &one), LODGE_INVALID) && NAMES("sandboxes"));
	CHECK(lodge_cleanup(lodge, "greedy", NULL) == 0);
	lodge_free(first);
}

static void tenants_do_not_see_each_other(void)
{
	struct lodge_options o = { SIZED(lodge_options), .home = home, .tenant = "other",
				   .actor = "someone" };
	struct lodge_sessions *all = NULL;
	struct lodge_session *s = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	lodge_close(lodge);
	lodge = NULL;
	CHECK(lodge_open(&o, &lodge) == 0);
	CHECK(FAILS(lodge_get(lodge, &me, &s), LODGE_NOT_FOUND));
	CHECK(lodge_list(lodge, NULL, &all) == 0 && all->count == 0);
	lodge_free(all);
	lodge_close(lodge);
	lodge = NULL;
	CHECK(start() == 0 && lodge_get(lodge, &me, &s) == 0 && s->state == LODGE_STATE_ACTIVE);
	lodge_free(s);
}

static int run_all(void)
{
	RUN(errors_are_reported);
	RUN(structs_grow);
	RUN(a_second_process_is_refused);
	RUN(a_key_leads_to_one_session);
	RUN(many_threads_get_one_sandbox);
	RUN(errors_name_the_field);
	RUN(options_are_applied);
	RUN(pause_hibernate_and_resume);
	RUN(preferences_change);
	RUN(destroyed_sessions_have_a_tombstone);
	RUN(quotas_are_enforced);
	RUN(tenants_do_not_see_each_other);
	return leave();
}

/* ---- in two processes ------------------------------------------------------------------------ */

static const char *exec_id; /* the command that keeps running */

/* Starts a command and exits; prints what the second half needs. */
static void first_process(void)
{
	struct lodge_command c = { SIZED(lodge_command),
				   .text = "echo before; while [ ! -e go ]; do sleep 0.05; done; "
					   "echo after; exit 7" };
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;
	uint64_t at = 0;

	CHECK(enter_me(&s) == 0);
	CHECK(lodge_file_write(lodge, &me, "note", "left here\n", 10, 0) == 0);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0 && reads(x, &at, "before\n"));
	printf("exec %s\nsandbox %s\n", lodge_exec_id(x), s->sandbox);
	lodge_exec_close(x);
	lodge_free(s);
}

static void second_process(void)
{
	struct lodge_exec_info *info = NULL;
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;
	uint64_t at = 0;

	CHECK(enter_me(&s) == 0 && s->outcome == LODGE_REUSED && s->incarnation == 1);
	printf("sandbox %s\n", s->sandbox);
	lodge_free(s);
	CHECK(says(&me, "cat note", "left here"));
	CHECK(lodge_exec_open(lodge, exec_id, &x) == 0 && !lodge_exec_ended(x));
	CHECK(reads(x, &at, "before\n"));
	CHECK(lodge_file_write(lodge, &me, "go", "", 0, 0) == 0);
	CHECK(reads(x, &at, "after\n") && lodge_exec_wait(x, 20000, NULL) == 0);
	CHECK(lodge_exec_get(x, &info) == 0 && info->state == LODGE_EXEC_EXITED);
	CHECK(info->exit_code == 7);
	lodge_free(info);
	lodge_exec_close(x);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "all";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	home = argv[1];
	if (!strcmp(what, "open")) {
		if (start() == 0)
			return 0;
		printf("%s\n", lodge_last_error());
		return 1;
	}
	if (!strcmp(what, "all"))
		return run_all();
	if (!strcmp(what, "clean"))
		return leave();
	exec_id = argc > 3 ? argv[3] : "";
	if (!strcmp(what, "leave") || !strcmp(what, "vanish"))
		RUN(first_process);
	else
		RUN(second_process);
	if (!strcmp(what, "vanish"))
		_exit(tap_done());
	lodge_close(lodge);
	return tap_done();
}
