/* SPDX-License-Identifier: Apache-2.0 */
/* Switching users between projects with real sandboxes: no unsaved file is lost, a named fragment
 * restores exactly its files, and every failure leaves the user with a complete sandbox. */
#include <pthread.h>
#include <signal.h>

#include "base/array.h"
#include "sandbox/files_client.h"
#include "admit/user_queue.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "project/users.h"
#include "switch_fixture.h"
#include "exec/side_conn.h"
#include "count_active.h"
#include "snapshot/snapshot.h"
#include "project/project_switch.h"
#include "project/user_kill.h"
#include "layers/snapshot_record.h"

/* ---- switching ---------------------------------------------------------------------------- */

static void a_project_without_a_fragment_is_empty(void)
{
	struct switch_result s;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "a"));
	CHECK(switch_to("ann", "a", NULL, &s, &err) == 0);
	CHECK(s.restored_files == 0 && !s.has_restored_files && !*s.fragment && !*s.previous);
	CHECK(s.outcome == SESSION_CREATED && *s.sandbox);
	CHECK(here(FILES, ""));
	CHECK(ann_is_at("a", ""));
	CHECK(refers_to("user", "ann", s.session) && refers_to("project", "ann/a", s.session));
}

static void a_new_working_copy_starts_from_the_latest_fragment(void)
{
	struct switch_result s;

	EMPTY_ENGINE();
	CHECK(two_projects() && save("ann", "a", "fa2", "{\"new/x.txt\":\"2\"}"));
	CHECK(go("a", NULL, &s) && s.restored_files == 1 && s.has_restored_files);
	CHECK_STR(s.fragment, "fa2");
	CHECK(here(FILES, "./new/x.txt\n") && ann_is_at("a", "fa2"));
}

static void unsaved_work_survives_a_switch(void)
{
	struct switch_result a, b, back;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &a));
	CHECK(here("echo more >>a.txt; echo unsaved >n; chmod 600 n", ""));
	CHECK(go("b", NULL, &b));
	CHECK_STR(b.previous, a.session);
	CHECK(here(FILES "; cat b.txt", "./b.txt\nbeta\n"));
	CHECK(state_of(a.session) == SESSION_HIBERNATED && state_of(b.session) == SESSION_ACTIVE);
	CHECK(go("a", NULL, &back));
	CHECK_STR(back.session, a.session);
	CHECK(back.outcome == SESSION_RESUMED && back.has_restored_files && !back.state_lost);
	CHECK_STR(back.fragment, "fa");
	CHECK(here("cat a.txt n; stat -c %a n", "alpha\nmore\nunsaved\n600\n"));
	CHECK(state_of(b.session) == SESSION_HIBERNATED && count_sessions() == 2);
	CHECK(ann_is_at("a", "fa") && refers_to("user", "ann", a.session));
}

static void switching_to_the_active_project_changes_nothing(void)
{
	struct switch_result first, again;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &first) &&
	      here("sleep 1000 >&- 2>&- & echo $! > pid", ""));
	CHECK(go("a", NULL, &again) && again.outcome == SESSION_REUSED && !*again.previous);
	CHECK_STR(again.sandbox, first.sandbox);
	CHECK(here("kill -0 $(cat pid) && echo alive", "alive\n"));
}

static void a_named_fragment_replaces_all_files(void)
{
	struct switch_result a, again;
	struct store_tombstone t;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", "fa", &a));
	CHECK(here("echo x >junk; mkdir d; echo y >d/z; echo changed >a.txt", ""));
	CHECK(go("a", "fa", &again) && strcmp(again.session, a.session) != 0);
	CHECK_STR(again.previous, a.session);
	CHECK(again.restored_files == 1 && again.has_restored_files);
	CHECK(here(FILES "; ls -A; cat a.txt", "./a.txt\na.txt\nalpha\n"));
	CHECK(session_tombstone(engine, &me, &(struct session_ref){ .id = a.session }, &t, &err) ==
	      0);
	CHECK_STR(t.cause.code, session_cause_name(SESSION_CAUSE_REPLACED));
	CHECK(count_sessions() == 1 && refers_to("project", "ann/a", again.session));
}

static void a_hibernated_working_copy_is_replaced_too(void)
{
	struct switch_result a, b, named;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &a) && go("b", NULL, &b) && go("a", "fa", &named));
	CHECK(state_of(a.session) == -1 && state_of(b.session) == SESSION_HIBERNATED);
	CHECK(refers_to("project", "ann/a", named.session) &&
	      refers_to("project", "ann/b", b.session));
	CHECK(count_sessions() == 2);
}

static void users_are_isolated(void)
{
	struct switch_result mine, theirs;

	EMPTY_ENGINE();
	CHECK(two_projects() && team_put(engine, &me, NULL, "t", "a/b%", TEAM_VIEWER, &err) == 0 &&
	      team_put(engine, &me, NULL, "t", "ann", TEAM_MEMBER, &err) == 0);
	CHECK(project_add(engine, &me, "ann", &(struct project_opts){ "c", "c", "t" },
			  &(struct store_project){ 0 }, &err) == 0);
	CHECK(save("ann", "c", "fc", "{\"c\":\"c\"}"));
	CHECK(switch_to("a/b%", "c", NULL, &theirs, &err) == 0);
	CHECK(go("c", NULL, &mine) && strcmp(mine.session, theirs.session) != 0);
	CHECK(refers_to("project", "a%2Fb%25/c", theirs.session) &&
	      refers_to("user", "a/b%", theirs.session));
	CHECK(switch_to("a/b%", "a", NULL, &theirs, &err) < 0);
	CHECK_STR(err.msg, "Project not found");
}

/* ---- content ------------------------------------------------------------------------------- */

static void files_are_restored_exactly(void)
{
	static const char files[] =
		"{\"bin\":\"__BASE64__AAECA/8A/w==\",\"deep/er/and/deeper\":\"data:x/y;base64,/wD/"
		"\","
		"\"gr\\u00fcn/\\u4e16\":\"text\\u0000\\r\\n\",\"empty\":\"\",\"-rf\":\"dash\","
		"\"%s\":\"long\"}";
	char json[sizeof(files) + 400], path[302];
	static const struct {
		const char *path, *data;
		size_t size;
	} want[] = {
		{ "bin", "\x00\x01\x02\x03\xff\x00\xff", 7 },
		{ "deep/er/and/deeper", "\xff\x00\xff", 3 },
		{ "gr\xc3\xbcn/\xe4\xb8\x96", "text\0\r\n", 7 },
		{ "empty", "", 0 },
		{ "-rf", "dash", 4 },
	};
	struct side_conn *loan;
	struct switch_result s;
	size_t len;
	void *data;

	EMPTY_ENGINE();
	memset(path, 'l', sizeof(path));
	path[150] = '/';
	path[301] = '\0';
	snprintf(json, sizeof(json), files, path);
	CHECK(two_projects() && save("ann", "a", "f", json) && go("a", "f", &s));
	CHECK(s.restored_files == 6);
	CHECK(side_conn_open(engine, &me, &(struct session_ref){ .id = s.session }, false, &loan,
			     NULL, &err) == 0);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CHECK(files_read(side_conn_sandbox(loan), NULL, want[i].path, 100, &data, &len,
				 &err) == 0);
		CHECK(len == want[i].size && memcmp(data, want[i].data, len) == 0);
		free(data);
	}
	CHECK(files_read(side_conn_sandbox(loan), NULL, path, 100, &data, &len, &err) == 0);
	CHECK_STR(data, "long");
	free(data);
	side_conn_close(loan);
	CHECK(here("find . -type f | wc -l; id -un >/dev/null; stat -c %a bin; touch bin",
		   "6\n644\n"));
}

static char *many_files(int n)
{
	char *json = malloc((size_t)n * 64), *p = json;

	for (int i = 0; json && i < n; i++)
		p += sprintf(p, "%c\"dir%d/sub%d/file%d.txt\":\"content of %d\\n\"", i ? ',' : '{',
			     i % 100, i % 7, i, i);
	if (json)
		memcpy(p, "}", 2);
	return json;
}

struct report {
	unsigned count, files, last_step, total;
	bool in_order, ready;
};

static void note(void *arg, const struct progress_state *now)
{
	struct report *t = arg;

	t->in_order = t->in_order && now->step >= t->last_step && now->step <= now->total_steps &&
		      (!t->total || t->total == now->total_steps) && !t->ready;
	t->files += strcmp(now->stage, "restore") == 0;
	t->last_step = now->step;
	t->total = now->total_steps;
	t->ready = now->status == PROGRESS_READY;
	t->count++;
}

static void progress_of_a_switch_is_reported(void)
{
	static const struct {
		const char *project, *fragment;
		unsigned count, files, total;
	} asked[] = { { "a", "many", 7, 4, 6 }, /* at 0, 1,000 ... of 3,500 */
		      { "b", "fb", 4, 1, 3 },
		      { "a", NULL, 3, 0, 2 } }; /* the working copy */
	char *json;

	EMPTY_ENGINE();
	json = many_files(3500);
	CHECK(json && two_projects() && save("ann", "a", "many", json));
	free(json);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		struct report t = { .in_order = true };
		struct switch_opts want = { .user = "ann",
					    .project = asked[i].project,
					    .fragment = asked[i].fragment,
					    .on_progress = note,
					    .progress_arg = &t };
		struct progress_state latest;
		struct switch_result s;

		CHECK(switch_user(engine, &me, &want, &s, &err) == 0);
		printf("# %u reports, %u of files, %u steps\n", t.count, t.files, t.total);
		CHECK(t.in_order && t.ready && t.last_step == t.total);
		CHECK(t.count == asked[i].count && t.files == asked[i].files);
		CHECK(t.total == asked[i].total);
		CHECK(progress_get(engine, s.session, &latest, &err) == 0);
		CHECK(latest.status == PROGRESS_READY && latest.total_steps == t.total);
	}
	{
		struct report t = { .in_order = true };
		struct switch_opts want = {
			.user = "ann", .project = "nope", .on_progress = note, .progress_arg = &t
		};
		struct switch_result s;

		CHECK(switch_user(engine, &me, &want, &s, &err) < 0 && t.count == 0);
	}
}

static void ten_thousand_files_are_restored_at_once(void)
{
	char *json;
	struct fragment_opts want = { .from_sandbox = true };
	struct fragment_add_result f;
	struct switch_result s;

	EMPTY_ENGINE();
	json = many_files(STORE_FILES_MAX);
	CHECK(json && two_projects() && save("ann", "a", "many", json) && go("a", "many", &s));
	free(json);
	CHECK(s.restored_files == STORE_FILES_MAX);
	CHECK(here("find . -type f | wc -l; cat dir99/sub*/file9999.txt",
		   "10000\ncontent of 9999\n"));
	CHECK(fragment_add(engine, &me, "ann", "a", &want, &f, &err) == 0);
	CHECK(f.fragment.files == STORE_FILES_MAX && f.skipped == 0 && !*f.fragment.snapshot);
}

static void the_working_copy_can_be_saved(void)
{
	struct fragment_opts want = { .id = "saved", .title = "T", .from_sandbox = true };
	struct fragment_add_result f;
	struct store_file_list l;
	struct store_fragment rec;
	struct switch_result s;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &s));
	CHECK(here(
		"mkdir -p d/e; printf '\\0\\377' >d/e/bin; ln -s a.txt link; mkfifo pipe; : >nil;"
		"touch $(printf 'no\\377text'); echo secret >s; chmod 0 s",
		""));
	CHECK(go("b", NULL, &s)); /* saving resumes the hibernated working copy */
	CHECK(fragment_add(engine, &me, "ann", "a", &want, &f, &err) == 0);
	CHECK(f.fragment.files == 3 && f.skipped == 4);
	CHECK(fragment_get(engine, &me, "ann", "a", "saved", &rec, &l, &err) == 0 && l.count == 3);
	CHECK_STR(rec.title, "T");
	CHECK_STR(l.items[1].path, "d/e/bin");
	CHECK(l.items[1].size == 2 && memcmp(l.items[1].data, "\0\377", 2) == 0);
	store_file_list_fini(&l);
	CHECK(go("a", "saved", &s) && s.restored_files == 3);
	CHECK(here(FILES "; cat a.txt", "./a.txt\n./d/e/bin\n./nil\nalpha\n"));
}

static void too_many_files_become_a_snapshot(void)
{
	struct fragment_opts want = { .id = "big", .from_sandbox = true };
	struct fragment_add_result f;
	struct store_snapshot snap;
	struct switch_result s;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &s));
	CHECK(here("for i in 1 2 3; do head -c 25M /dev/zero >z$i; done; ln -s z1 l", ""));
	CHECK(fragment_add(engine, &me, "ann", "a", &want, &f, &err) == 0);
	CHECK(*f.fragment.snapshot && f.fragment.files == 0);
	CHECK(here("rm z1; echo later >later", ""));
	CHECK(go("a", "big", &s) && s.has_restored_files && s.restored_files == 0);
	CHECK(here("ls; stat -Lc %s l", "a.txt\nl\nz1\nz2\nz3\n26214400\n"));
	CHECK_STR(s.fragment, "big");
	CHECK(snapshot_get(engine, &me, f.fragment.snapshot, &snap, &err) == 0);
	CHECK(fragment_remove(engine, &me, "ann", "a", "big", &err) == 0);
	CHECK(snapshot_get(engine, &me, f.fragment.snapshot, &snap, &err) < 0);
}

static void a_snapshot_must_belong_to_the_user(void)
{
	struct fragment_opts want = { .id = "snap" };
	struct snapshot_opts how = { .name = "mine" };
	struct fragment_add_result f;
	struct store_snapshot snap;
	struct switch_result s;

	EMPTY_ENGINE();
	CHECK(two_projects() && make_project("bob", "c") && go("a", NULL, &s));
	CHECK(here("echo kept >kept", ""));
	CHECK(session_snapshot(engine, &me, &(struct session_ref){ .id = s.session }, &how, &snap,
			       &err) == 0);
	want.snapshot = snap.id;
	CHECK(fragment_add(engine, &me, "bob", "c", &want, &f, &err) < 0);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(fragment_add(engine, &me, "ann", "b", &want, &f, &err) == 0);
	CHECK(go("b", "snap", &s) && here("cat kept", "kept\n"));
	CHECK(fragment_remove(engine, &me, "ann", "b", "snap", &err) == 0);
	CHECK(snapshot_get(engine, &me, snap.id, &snap, &err) == 0); /* it belongs to the caller */
}

/* ---- failures ------------------------------------------------------------------------------ */

static bool refused(const char *project, const char *fragment, enum err_code code, const char *text)
{
	struct switch_result s;

	if (switch_to("ann", project, fragment, &s, &err) == 0)
		return false;
	if (err.code == code && strstr(err.msg, text))
		return true;
	printf("# %d: %s\n", err.code, err.msg);
	return false;
}

static void a_bad_fragment_changes_nothing(void)
{
	struct store_fragment bad = { .tenant = "acme", .id = "bad", .project = "b" };
	struct store_file file = { .path = (char[]){ "ok/../../out" } };
	struct switch_result s;
	int r = -1;

	EMPTY_ENGINE();
	CHECK(two_projects() && make_project("bob", "c") && save("bob", "c", "fc", "{}"));
	CHECK(go("a", NULL, &s) && here("echo u >unsaved; sleep 1000 >&- 2>&- & :", ""));
	CHECK(refused("b", "nope", ERR_NOT_FOUND, "Fragment not found: nope"));
	CHECK(refused("b", "fa", ERR_CONFLICT, "Fragment fa does not belong to project b"));
	CHECK(refused("c", "fc", ERR_NOT_FOUND, "Project not found"));
	CHECK(refused("none", NULL, ERR_NOT_FOUND, "Project not found"));
	WITH_STORE(engine, st) /* as an older version could have stored it */
	r = store_fragment_add(st, &bad, &file, 1, &err);
	CHECK(r == 0 && refused("b", "bad", ERR_INVALID, "ok/../../out"));
	CHECK(refused("b", NULL, ERR_INVALID, "ok/../../out")); /* it is the latest */
	CHECK(untouched(&s, 1) && ann_is_at("a", "fa"));
}

static void files_that_do_not_fit_change_nothing(void)
{
	struct switch_opts want = { .user = "ann", .project = "b", .fragment = "fat" };
	static const char head[] = "{\"a\":\"1\",\"fat\":\"", tail[] = "\"}";
	char *json;
	struct template small;
	struct switch_result s, t;

	EMPTY_ENGINE();
	json = malloc(5 << 20);
	CHECK(json && two_projects());
	memset(json, 'x', 5 << 20);
	memcpy(json, head, strlen(head));
	memcpy(json + (5 << 20) - sizeof(tail), tail, sizeof(tail));
	CHECK(save("ann", "b", "fat", json));
	free(json);
	CHECK(go("a", NULL, &s) && here("echo u >unsaved; sleep 1000 >&- 2>&- & :", ""));
	template_init(&small);
	CHECK(template_set_limit(&small, "file_bytes", 1 << 20, &err) == 0);
	want.over = &small;
	CHECK(switch_user(engine, &me, &want, &t, &err) < 0);
	printf("# %s\n", err.msg);
	CHECK(untouched(&s, 1) && ann_is_at("a", "fa"));
	want.over = NULL;
	CHECK(switch_user(engine, &me, &want, &t, &err) == 0);
	template_fini(&small);
}

static void links_are_not_followed(void)
{
	struct switch_opts want = { .user = "ann", .project = "b", .fragment = "link" };
	struct template odd;
	struct switch_result s, t;

	EMPTY_ENGINE();
	CHECK(two_projects() && save("ann", "b", "link", "{\"bin/x\":\"1\"}"));
	CHECK(go("a", NULL, &s) && here("echo u >unsaved; sleep 1000 >&- 2>&- & :", ""));
	if (!here("readlink /bin", "usr/bin\n"))
		SKIP("/bin is no link here");
	template_init(&odd);
	odd.workdir = strdup("/");
	want.over = &odd;
	CHECK(switch_user(engine, &me, &want, &t, &err) < 0);
	template_fini(&odd);
	CHECK(err.code == ERR_INVALID && strstr(err.msg, "bin/x: not a directory on the path"));
	CHECK(untouched(&s, 1) && ann_is_at("a", "fa"));
}

static void switching_from_a_dead_sandbox(void)
{
	struct switch_result a, b;
	struct side_conn *loan;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &a) && here("echo kept >kept", ""));
	CHECK(side_conn_open(engine, &me, &(struct session_ref){ .id = a.session }, false, &loan,
			     NULL, &err) == 0);
	CHECK(kill(sandbox_pid(side_conn_sandbox(loan)), SIGKILL) == 0);
	side_conn_close(loan);
	CHECK(go("b", NULL, &b) && here("cat b.txt", "beta\n"));
	CHECK(state_of(a.session) != SESSION_ACTIVE);
	CHECK(go("a", NULL, &a) && !a.state_lost && here("cat kept", "kept\n"));
}

static void lost_files_are_reported_and_replaced_by_the_latest_fragment(void)
{
	struct switch_result a, b, again;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("a", NULL, &a) && here("echo lost >lost", ""));
	CHECK(keeper_conn_destroy(engine, a.sandbox, &err) == 0);
	CHECK(go("b", NULL, &b));
	CHECK(go("a", NULL, &again) && again.state_lost && *again.cause.text);
	CHECK(again.outcome == SESSION_REPLACED && again.restored_files == 1);
	CHECK(here(FILES, "./a.txt\n") && refers_to("project", "ann/a", again.session));
	CHECK(count_sessions() == 2);
}

/* ---- concurrency --------------------------------------------------------------------------- */

struct asked {
	const char *project, *fragment;
	struct switch_result got;
	struct err err;
	int r;
};

static void *ask(void *arg)
{
	struct asked *a = arg;

	a->r = switch_to("ann", a->project, a->fragment, &a->got, &a->err);
	return NULL;
}

/* Whether so many calls come to wait for the user's slot behind this one. */
static bool wait_behind(const struct user_queue_ticket *first, size_t want)
{
	const struct gate_ticket *own = &first->lock.ticket;
	size_t n = 0;

	for (int i = 0; i < 12000 && n != want + 1; i++, nap(10)) {
		n = 0;
		pthread_mutex_lock(&own->gate->mutex);
		for (const struct gate_ticket *t = own->gate->first; t; t = t->next)
			n += !strcmp(t->tenant, own->tenant) && !strcmp(t->key, own->key);
		pthread_mutex_unlock(&own->gate->mutex);
	}
	return n == want + 1;
}

static void switches_are_serialized_and_the_last_one_wins(void)
{
	struct asked asked[] = { { .project = "a" },
				 { .project = "b", .fragment = "fb" },
				 { .project = "a", .fragment = "fa" },
				 { .project = "a", .fragment = "none" },
				 { .project = "b" } };
	pthread_t threads[ARRAY_LEN(asked)];
	struct switch_result *last = &asked[4].got;
	struct user_queue_ticket place;

	EMPTY_ENGINE();
	CHECK(two_projects());
	user_queue_enter(&place, engine, &me, "ann");
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		CHECK(pthread_create(&threads[i], NULL, ask, &asked[i]) == 0);
		CHECK(wait_behind(&place, i + 1));
	}
	user_queue_leave(&place);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		CHECK(asked[i].r == (i == 3 ? -1 : 0));
	CHECK_STR(last->session, asked[1].got.session); /* the working copy from before */
	CHECK(refers_to("user", "ann", last->session) && ann_is_at("b", "fb"));
	CHECK(refers_to("project", "ann/b", last->session));
	CHECK(refers_to("project", "ann/a", asked[2].got.session) &&
	      state_of(asked[0].got.session) < 0);
	CHECK(count_sessions() == 2 && count_active(engine) == 1);
	CHECK(here("cat b.txt", "beta\n"));
}

/* ---- cleanup ------------------------------------------------------------------------------- */

/* Each one that waits holds a thread of the service. */
static void the_queue_of_a_user_is_bounded(void)
{
	static struct user_queue_ticket places[1024], other;
	size_t n = 0;

	EMPTY_ENGINE();
	while (n < 1024 && user_queue_join(&places[n], engine, &me, "ann", &err) == 0)
		n++;
	CHECK(n >= 100 && n < 1024 && err.code == ERR_UNAVAILABLE);
	CHECK(user_queue_join(&other, engine, &me, "bob", &err) == 0);
	user_queue_leave(&other);
	while (n-- > 0)
		user_queue_leave(&places[n]);
}

static void running_sandboxes_of_a_user_can_be_killed(void)
{
	struct switch_result s;
	struct kill_result_list l;
	struct user_info info;

	EMPTY_ENGINE();
	CHECK(two_projects() && make_project("bob", "c") && enter("other"));
	CHECK(enter_as("free", (struct session_opts){ 0 }, NULL) == 0);
	CHECK(switch_to("bob", "c", NULL, &s, &err) == 0);
	CHECK(go("a", NULL, &s) && go("b", NULL, &s));
	CHECK(user_get(engine, &me, "ann", &info, &err) == 0 && info.has_session);
	CHECK(info.active == 2); /* "other" is also a session of ann */
	CHECK(!strcmp(info.project_name, "b") && !strcmp(info.session.id, s.session));
	user_info_fini(&info);
	CHECK(user_kill_sandboxes(engine, &me, "ann", &l, &err) == 0 && l.count == 2);
	CHECK(l.killed == 2 && l.failed == 0 && l.projects == 1);
	kill_result_list_fini(&l);
	CHECK(count_sessions() == 3 && refers_to("user", "ann", "") && ann_is_at("", ""));
	CHECK(user_kill_sandboxes(engine, &me, "ann", &l, &err) == 0 && l.count == 0);
	kill_result_list_fini(&l);
	CHECK(look("free", NULL) == SESSION_ACTIVE && go("b", NULL, &s) && s.state_lost);
	CHECK(s.outcome == SESSION_REPLACED && !strcmp(s.cause.code, "cleanup"));
	CHECK(here(FILES, "./b.txt\n"));
	CHECK(go("a", NULL, &s) && !s.state_lost && s.outcome == SESSION_RESUMED);
}

static void removing_a_project_removes_its_working_copies(void)
{
	struct switch_result a, b;

	EMPTY_ENGINE();
	CHECK(two_projects() && go("b", NULL, &b) && go("a", NULL, &a));
	CHECK(project_remove(engine, &me, "ann", "a", &err) == 0);
	CHECK(state_of(a.session) < 0 && state_of(b.session) == SESSION_HIBERNATED);
	CHECK(refers_to("user", "ann", ""));
	CHECK(refused("a", NULL, ERR_NOT_FOUND, "Project not found"));
	CHECK(go("b", NULL, &b) && here("cat b.txt", "beta\n"));
}

int main(void)
{
	make_home();
	RUN(a_project_without_a_fragment_is_empty);
	RUN(a_new_working_copy_starts_from_the_latest_fragment);
	RUN(unsaved_work_survives_a_switch);
	RUN(switching_to_the_active_project_changes_nothing);
	RUN(a_named_fragment_replaces_all_files);
	RUN(a_hibernated_working_copy_is_replaced_too);
	RUN(users_are_isolated);
	RUN(files_are_restored_exactly);
	RUN(ten_thousand_files_are_restored_at_once);
	RUN(progress_of_a_switch_is_reported);
	RUN(the_working_copy_can_be_saved);
	RUN(too_many_files_become_a_snapshot);
	RUN(a_snapshot_must_belong_to_the_user);
	RUN(a_bad_fragment_changes_nothing);
	RUN(files_that_do_not_fit_change_nothing);
	RUN(links_are_not_followed);
	RUN(switching_from_a_dead_sandbox);
	RUN(lost_files_are_reported_and_replaced_by_the_latest_fragment);
	RUN(switches_are_serialized_and_the_last_one_wins);
	RUN(the_queue_of_a_user_is_bounded);
	RUN(running_sandboxes_of_a_user_can_be_killed);
	RUN(removing_a_project_removes_its_working_copies);
	remove_home();
	return tap_done();
}
