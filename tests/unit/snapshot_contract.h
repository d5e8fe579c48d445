/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, forks and rollbacks, and their layers on disk, with both kinds of storage. */
#ifndef LODGE_TESTS_SESSION_SNAPSHOT_CONTRACT_H
#define LODGE_TESTS_SESSION_SNAPSHOT_CONTRACT_H

#include "snapshot_cases.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "count_active.h"
#include "service/engine_open.h"
#include "layers/snapshot_record.h"

#include <signal.h>

/* ---- snapshots ------------------------------------------------------------------------------- */

static void a_snapshot_of_a_running_session(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_snapshot s, got;
	struct store_session before, after;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", ""));
	CHECK((x = start("a", "sleep 1000")));
	CHECK(look("a", &before) == SESSION_ACTIVE);
	CHECK(take("a", "first", &s));
	CHECK(look("a", &after) == SESSION_ACTIVE);
	CHECK_STR(after.sandbox, before.sandbox); /* it was only paused */
	CHECK(!exec_has_ended(x) && says("a", "pgrep -c sleep", "1\n"));
	CHECK(after.generation == before.generation + 1 && s.generation == after.generation);
	CHECK_STR(after.snapshot, s.id);
	CHECK(!snapshot_get(engine, &me, s.id, &got, &err));
	CHECK_STR(got.name, "first");
	CHECK_STR(got.session, after.id);
	CHECK(got.bytes > 0 && has_layer(got.layer)); /* measured in the background */
	CHECK(says("a", "echo two > f; echo more > g", ""));
	CHECK(exec_signal(x, SIGKILL, AGENT_TO_TREE, &err) == 0);
	CHECK(roll_back("a", s.id) && is("a", SESSION_ACTIVE));
	CHECK(says("a", "cat f; ls", "one\nf\n"));
	CHECK(look("a", &after) >= 0 && after.generation == before.generation + 2);
	CHECK(after.incarnation == before.incarnation + 1 && count_active(engine) == 1);
}

static void a_snapshot_of_a_hibernated_session(void)
{
	struct store_snapshot s, t;
	struct store_session r;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && hibernate("a"));
	CHECK(take("a", NULL, &s) && take("a", NULL, &t) && is("a", SESSION_HIBERNATED));
	CHECK_STR(s.layer, t.layer);
	CHECK(look("a", &r) >= 0);
	CHECK_STR(r.layer, s.layer);
	CHECK(on_disk() == 1); /* nothing was copied */
	CHECK(says("a", "cat f; echo two > f",
		   "one\n")); /* the sandbox does not take over the layer */
	CHECK(has_layer(s.layer) && hibernate("a"));
	CHECK(roll_back("a", s.id) && is("a", SESSION_HIBERNATED));
	CHECK(says("a", "cat f", "one\n"));
	CHECK(roll_back("a", t.id) && is("a", SESSION_ACTIVE) && says("a", "cat f", "one\n"));
}

static void a_snapshot_with_a_stop(void)
{
	struct session_ref a = key("a");
	struct snapshot_opts want = { .name = "still", .stop = true };
	struct store_session before, after;
	struct store_snapshot s;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && look("a", &before) >= 0);
	CHECK(!session_snapshot(engine, &me, &a, &want, &s, &err));
	CHECK(look("a", &after) == SESSION_ACTIVE && strcmp(after.sandbox, before.sandbox) != 0);
	CHECK(count_active(engine) == 1 && says("a", "cat f; echo two > f", "one\n"));
	CHECK(roll_back("a", s.id) && says("a", "cat f", "one\n"));
}

static void a_paused_session_stays_paused(void)
{
	struct session_ref a = key("a");
	struct store_snapshot s;
	struct store_session r;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", ""));
	CHECK(!session_pause(engine, &me, &a, 0, NULL, &err));
	CHECK(take("a", NULL, &s) && look("a", &r) == SESSION_ACTIVE && r.paused);
	CHECK(says("a", "cat f; echo two > f", "one\n"));
	CHECK(!session_pause(engine, &me, &a, 0, NULL, &err));
	CHECK(roll_back("a", s.id) && look("a", &r) == SESSION_ACTIVE && !r.paused);
	CHECK(says("a", "cat f", "one\n"));
}

static void names_are_checked(void)
{
	static const char *const bad[] = { "", "a\nb", "\x7f", "\xff" };
	char longest[STORE_NAME + 1];
	struct session_ref a = key("a");
	struct store_snapshot s;

	FRESH();
	CHECK(enter("a") && enter("b"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct snapshot_opts want = { .name = bad[i] };

		CHECK(session_snapshot(engine, &me, &a, &want, &s, &err) < 0);
		CHECK(err.code == ERR_INVALID && !strncmp(err.msg, "name", 4));
	}
	memset(longest, 'x', sizeof(longest));
	longest[STORE_NAME] = '\0';
	CHECK(session_snapshot(engine, &me, &a, &(struct snapshot_opts){ .name = longest }, &s,
			       &err) < 0);
	longest[STORE_NAME - 1] = '\0';
	CHECK(take("a", longest, &s));
	CHECK_STR(s.name, longest);
	CHECK(take("a", "caf\xc3\xa9 1", &s) && take("b", "caf\xc3\xa9 1", &s));
	CHECK(session_snapshot(engine, &me, &a, &(struct snapshot_opts){ .name = "caf\xc3\xa9 1" },
			       &s, &err) < 0);
	CHECK(err.code == ERR_CONFLICT && strstr(err.msg, "caf\xc3\xa9 1"));
	collect_all();
	CHECK(on_disk() == 3); /* a refused call leaves nothing */
}

static void impossible_requests_are_refused(void)
{
	static const struct caller other = { "globex", "test" };
	struct session_opts asleep = { .user = "ann", .no_start = true };
	struct session_ref a = key("a"), none = key("none");
	struct snapshot_opts want = { 0 };
	struct store_snapshot s, of_b;
	struct store_session r;

	FRESH();
	CHECK(enter("a") && enter("b") && take("a", NULL, &s) && take("b", NULL, &of_b));
	CHECK(enter_as("none", asleep, NULL) == 0 && is("none", SESSION_NONE));
	CHECK(session_snapshot(engine, &me, &none, &want, &s, &err) < 0);
	CHECK(err.code == ERR_CONFLICT && strstr(err.msg, "cannot snapshot session"));
	CHECK(session_fork(engine, &me, &none, NULL, 1, NULL, &r, &err) < 0);
	CHECK(err.code == ERR_CONFLICT);
	CHECK(session_fork(engine, &me, &a, NULL, 0, NULL, &r, &err) < 0);
	CHECK(err.code == ERR_INVALID);
	CHECK(session_fork(engine, &me, &a, of_b.id, 1, NULL, &r, &err) < 0);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(session_rollback(engine, &me, &a, of_b.id, 0, NULL, &err) < 0);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(session_rollback(engine, &me, &a, "snp_nosuch", 0, NULL, &err) < 0);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(session_rollback(engine, &me, &a, s.id, 7777, NULL, &err) < 0);
	CHECK(err.code == ERR_CONFLICT);
	CHECK(snapshot_get(engine, &other, s.id, &s, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(snapshot_remove(engine, &other, s.id, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(snapshot_remove(engine, &me, "", &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(!session_archive(engine, &me, &a, 0, NULL, &err));
	CHECK(take("a", NULL,
		   &s)); /* snapshots of archived sessions are possible, changes are not */
	CHECK(session_rollback(engine, &me, &a, s.id, 0, NULL, &err) < 0);
	CHECK(err.code == ERR_CONFLICT && is("a", SESSION_ARCHIVED));
}

static void snapshots_are_listed(void)
{
	struct store_page two = { .limit = 2 };
	struct session_ref a = key("a"), gone = { .id = NULL };
	struct store_snapshot_list l;
	struct store_snapshot s[3];
	struct store_session r;

	FRESH();
	CHECK(enter("a") && enter("b") && says("a", "echo one > f", ""));
	CHECK(take("a", "1", &s[0]) && take("b", "2", &s[1]) && take("a", "3", &s[2]));
	CHECK(!snapshot_list(engine, &me, NULL, two, &l, &err) && l.count == 2 && l.next);
	CHECK_STR(l.items[1].id, s[1].id);
	two.after = l.next;
	store_snapshot_list_fini(&l);
	CHECK(!snapshot_list(engine, &me, NULL, two, &l, &err) && l.count == 1);
	store_snapshot_list_fini(&l);
	two.after = 0;
	CHECK(!snapshot_list(engine, &me, &a, two, &l, &err) && l.count == 2);
	CHECK_STR(l.items[0].name, "1");
	CHECK_STR(l.items[1].name, "3");
	CHECK(l.items[0].bytes > 0);
	store_snapshot_list_fini(&l);
	CHECK(look("a", &r) >= 0 && destroy("a"));
	gone.id = r.id;
	CHECK(!snapshot_list(engine, &me, &gone, two, &l, &err) && l.count == 2);
	store_snapshot_list_fini(&l);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static struct store_binding bound_to(const char *name)
{
	struct store_binding b = { .kind = "key" };

	snprintf(b.key, sizeof(b.key), "%s", name);
	return b;
}

static void forks_have_their_own_files(void)
{
	struct store_binding keys[] = { bound_to("x"), bound_to("y") };
	struct session_opts want = { .user = "ann", .metadata = "{\"k\":\"v\"}" };
	struct session_ref a = key("a");
	struct store_session made[2], r;
	enum session_outcome how;

	FRESH();
	CHECK(enter_as("a", want, NULL) == 0 && says("a", "echo one > f", ""));
	CHECK(!session_fork(engine, &me, &a, NULL, 2, keys, made, &err));
	for (int i = 0; i < 2; i++) {
		CHECK_STR(made[i].user, "ann");
		CHECK_STR(made[i].metadata, "{\"k\":\"v\"}");
		CHECK(made[i].state == SESSION_HIBERNATED && made[i].generation == 1);
		store_session_fini(&made[i]);
	}
	CHECK(count_active(engine) == 1); /* forks have no sandbox yet */
	CHECK(says("a", "echo mine > f", ""));
	CHECK(says("x", "cat f; echo x > f", "one\n") && says("y", "cat f; echo y > f", "one\n"));
	CHECK(says("a", "cat f", "mine\n") && says("x", "cat f", "x\n") &&
	      says("y", "cat f", "y\n"));
	CHECK(hibernate("x") && enter_as("x", want, &how) == 0 && how == SESSION_RESUMED);
	CHECK(says("x", "cat f", "x\n") && look("x", &r) >= 0 && r.incarnation == 2);
	CHECK(destroy("a") && destroy("y"));
	collect_all();
	CHECK(says("x", "cat f", "x\n") && hibernate("x"));
	collect_all();
	CHECK(says("x", "cat f", "x\n"));
}

static void forks_of_hibernated_sessions_and_of_snapshots(void)
{
	struct store_binding k[] = { bound_to("now"), bound_to("then"), bound_to("free") };
	struct session_ref a = key("a"), by_id = { .id = NULL };
	struct store_session made[3];
	struct store_snapshot s;
	int before;

	FRESH();
	CHECK(enter("a") && says("a", "echo then > f", "") && take("a", NULL, &s));
	CHECK(says("a", "echo now > f", "") && hibernate("a"));
	before = on_disk();
	CHECK(!session_fork(engine, &me, &a, NULL, 1, &k[0], &made[0], &err));
	CHECK(!session_fork(engine, &me, &a, s.id, 1, &k[1], &made[1], &err));
	CHECK(!session_fork(engine, &me, &a, s.id, 1, NULL, &made[2], &err));
	CHECK(on_disk() == before && made[2].nbindings == 0);
	by_id.id = made[2].id;
	CHECK(!session_destroy(engine, &me, &by_id, NULL, NULL, &err));
	for (int i = 0; i < 3; i++)
		store_session_fini(&made[i]);
	CHECK(says("now", "cat f; echo other > f", "now\n"));
	CHECK(says("then", "cat f; echo other > f", "then\n"));
	CHECK(says("a", "cat f", "now\n") && roll_back("a", s.id) && says("a", "cat f", "then\n"));
}

static void all_forks_or_none(void)
{
	struct store_binding k[] = { bound_to("x"), bound_to("y"), bound_to("b") };
	struct session_ref a = key("a");
	struct store_session made[3];
	struct store_page page = { .limit = 100 };
	struct store_session_list l;
	struct store_session_filter mine = { .tenant = "acme" };

	FRESH();
	CHECK(enter("a") && enter("b"));
	CHECK(session_fork(engine, &me, &a, NULL, 3, k, made, &err) < 0);
	CHECK(err.code == ERR_CONFLICT && strstr(err.msg, "key b"));
	CHECK(!session_list(engine, &mine, page, &l, &err) && l.count == 2);
	store_session_list_fini(&l);
	collect_all();
	CHECK(on_disk() == 0);
}

static void a_new_session_from_a_snapshot(void)
{
	struct session_opts want = { .user = "bob" };
	struct store_snapshot s;
	enum session_outcome how;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && take("a", NULL, &s) && destroy("a"));
	collect_all();
	CHECK(has_layer(s.layer)); /* it outlives its session */
	want.snapshot = s.id;
	CHECK(enter_as("b", want, &how) == 0 && how == SESSION_CREATED);
	CHECK(says("b", "cat f; echo two > f", "one\n"));
	CHECK(!snapshot_remove(engine, &me, s.id, &err));
	collect_all();
	CHECK(says("b", "cat f", "two\n") && hibernate("b") && says("b", "cat f", "two\n"));
}

/* ---- layers on disk -------------------------------------------------------------------------- */

static void unreferenced_layers_are_removed(void)
{
	struct store_snapshot s;
	struct store_session r;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && take("a", "one", &s));
	collect_all();
	CHECK(on_disk() == 1 && has_layer(s.layer));
	CHECK(!snapshot_remove(engine, &me, s.id, &err));
	CHECK(look("a", &r) >= 0);
	CHECK_STR(r.snapshot, "");
	CHECK(snapshot_get(engine, &me, s.id, &s, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(on_disk() == 1);
	timers_collect(engine);
	CHECK(on_disk() == 0 && says("a", "cat f", "one\n") && hibernate("a"));
	timers_collect(engine);
	CHECK(on_disk() == 1 && says("a", "cat f", "one\n")); /* the sandbox takes over the layer */
	CHECK(on_disk() == 0 && hibernate("a") && destroy("a"));
	timers_collect(engine);
	CHECK(on_disk() == 1); /* too young */
	collect_all();
	CHECK(on_disk() == 0);
}

static void files_without_a_row_are_removed(void)
{
	struct layer_reservation l = { 0 };
	struct store_session r;
	uint64_t bytes;
	bool whole;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && look("a", &r) >= 0);
	CHECK(!keeper_conn_snapshot(engine, r.sandbox, "lay_stray", &whole, &bytes, &err));
	CHECK(!layers_reserve(engine, &l, &err) &&
	      !keeper_conn_snapshot(engine, r.sandbox, l.id, &whole, &bytes, &err));
	CHECK(whole == !is_dir_store);
	collect_all();
	CHECK(!has_layer("lay_stray") && has_layer(l.id));
	layers_unreserve(&l);
	collect_all();
	CHECK(on_disk() == 0);
}

/* As after a crash between sealing and the record. */
static void a_layer_just_sealed_stays(void)
{
	struct store_session r;
	bool whole;

	FRESH();
	CHECK(enter("a") && says("a", "echo one > f", "") && look("a", &r) >= 0);
	CHECK(!keeper_conn_stop(engine, r.sandbox, &err));
	CHECK(!keeper_conn_seal(engine, r.sandbox, r.sandbox, &whole, &err));
	collect_all();
	CHECK(has_layer(r.sandbox) && says("a", "cat f", "one\n"));
	collect_all();
	CHECK(on_disk() == 0);
}

static void holds_end_with_the_engine(void)
{
	struct store_snapshot s;

	FRESH();
	CHECK(enter("a") && take("a", NULL, &s));
	CHECK(!layers_hold(engine, s.layer, "export:x", &err));
	CHECK(!snapshot_remove(engine, &me, s.id, &err));
	collect_all();
	CHECK(has_layer(s.layer));
	ENGINE();
	collect_all();
	CHECK(on_disk() == 0);
}

static void a_session_knows_when_it_is_durable(void)
{
	struct session_ref a = key("a");
	bool durable = false;

	FRESH();
	CHECK(enter("a") && !session_is_durable(engine, &me, &a, &durable, &err) && durable);
	CHECK(says("a", "echo one > f", "") && hibernate("a"));
	durable = false;
	CHECK(!session_is_durable(engine, &me, &a, &durable, &err) && durable);
}

/* With threads it happens in the background, and the next startup finds what is left over. */
static void layers_are_synced_in_the_background(void)
{
	struct engine_opts o = { .home = home, .keeper_program = keeper, .clock = fake_time };
	struct session_ref ref;
	char name[8];
	bool durable;

	FRESH();
	close_engine();
	CHECK(engine_open(&o, &engine, &err) == 0);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		CHECK(enter(name) && says(name, "echo one > f", "") && hibernate(name));
	}
	close_engine(); /* during the merge */
	CHECK(engine_open(&o, &engine, &err) == 0);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		ref = key(name);
		durable = false;
		for (int j = 0; j < 4800 && !durable; j++, nap(25))
			CHECK(!session_is_durable(engine, &me, &ref, &durable, &err));
		CHECK(durable);
	}
}

/* ---- deep stacks ----------------------------------------------------------------------------- */

/* Adds a layer; the sandbox cannot take it over while a snapshot refers to it. */
static bool deepen(const char *name, int i, struct store_snapshot *ret)
{
	char text[64];

	snprintf(text, sizeof(text), "echo %d > f%d; rm -f f%d", i, i, i - 3);
	return says(name, text, "") && hibernate(name) && take(name, NULL, ret);
}

static void deep_stacks_are_flattened(void)
{
	struct engine_opts o = { .home = home, .keeper_program = keeper, .clock = fake_time };
	struct store_snapshot s[18];

	if (!is_dir_store)
		SKIP("stacks do not grow on btrfs");
	FRESH();
	CHECK(enter("a"));
	for (int i = 0; i < 18; i++)
		CHECK(deepen("a", i, &s[i]));
	CHECK(depth_of("a") == 18);
	close_engine();
	CHECK(engine_open(&o, &engine, &err) == 0); /* with threads: in the background */
	timers_collect(engine);
	for (int i = 0; i < 4800 && depth_of("a") != 1; i++)
		nap(25);
	CHECK(depth_of("a") == 1 && is("a", SESSION_HIBERNATED));
	CHECK(says("a", "cat f*", "15\n16\n17\n"));
	CHECK(roll_back("a", s[16].id) && says("a", "cat f*", "14\n15\n16\n"));
	CHECK(roll_back("a", s[3].id) && says("a", "cat f*", "1\n2\n3\n"));
	forget_snapshots();
	CHECK(hibernate("a"));
	collect_all();
	collect_all();
	CHECK(on_disk() == (int)depth_of("a") && says("a", "cat f*", "1\n2\n3\n"));
}

static void stacks_do_not_grow_on_btrfs(void)
{
	struct store_snapshot s;

	if (is_dir_store)
		SKIP("they do");
	FRESH();
	CHECK(enter("a"));
	for (int i = 0; i < 4; i++)
		CHECK(deepen("a", i, &s) && depth_of("a") == 1);
	CHECK(says("a", "cat f*", "1\n2\n3\n"));
}

static void too_deep_a_stack_is_refused_until_it_is_flattened(void)
{
	struct session_ref a = key("a");
	struct session_enter_result got;
	struct store_snapshot s;
	int i = 0;

	if (!is_dir_store)
		SKIP("stacks do not grow on btrfs");
	FRESH();
	CHECK(enter("a"));
	while (i < KEEPER_LAYERS_MAX)
		CHECK(deepen("a", i++, &s));
	CHECK(depth_of("a") == KEEPER_LAYERS_MAX);
	CHECK(session_resume(engine, &me, &a, 0, &got, &err) < 0 && err.code == ERR_LIMIT);
	CHECK(strstr(err.msg, "layers deep"));
	CHECK(session_rollback(engine, &me, &a, s.id, 0, NULL, &err) < 0 && err.code == ERR_LIMIT);
	timers_collect(engine);
	CHECK(depth_of("a") == 1 && says("a", "cat f*", "29\n30\n31\n"));
}

/* ---- concurrency ---------------------------------------------------------------------------- */

enum { CROWD = 4, ROUNDS = 6 };

static atomic_bool crowd_is_done;

static bool make_random_calls(const char *name)
{
	struct session_ref ref = { .key = name }, other = { .id = NULL };
	struct store_snapshot s;
	struct store_session made;
	struct err mine;
	bool good;

	if (session_snapshot(engine, &me, &ref, &(struct snapshot_opts){ 0 }, &s, &mine) < 0 ||
	    session_fork(engine, &me, &ref, NULL, 1, NULL, &made, &mine) < 0)
		return false;
	other.id = made.id;
	good = session_hibernate(engine, &me, &ref, 0, NULL, &mine) == 0 &&
	       session_rollback(engine, &me, &ref, s.id, 0, NULL, &mine) == 0 &&
	       snapshot_remove(engine, &me, s.id, &mine) == 0 &&
	       session_destroy(engine, &me, &other, NULL, NULL, &mine) == 0;
	store_session_fini(&made);
	if (!good)
		printf("# %s: %s\n", name, mine.msg);
	return good;
}

static void *run_worker(void *arg)
{
	const char *name = arg;
	char text[64];
	bool good = true;

	for (int i = 0; good && i < ROUNDS; i++) {
		snprintf(text, sizeof(text), "test $(cat f) = %s && echo %s > f", name, name);
		good = says(name, text, "") && make_random_calls(name);
	}
	return good ? arg : NULL;
}

static void *run_collector(void *arg)
{
	while (!crowd_is_done) {
		timers_collect(engine);
		(void)layers_remove_strays(engine); /* at the worst moments */
	}
	return arg;
}

static void concurrent_calls_do_not_remove_new_layers(void)
{
	static char names[CROWD][4] = { "c0", "c1", "c2", "c3" };
	pthread_t threads[CROWD], collector;
	struct engine_opts o = { .home = home, .keeper_program = keeper, .clock = fake_time };
	char text[16], want[8];
	void *got[CROWD];

	FRESH();
	close_engine();
	CHECK(engine_open(&o, &engine, &err) == 0);
	for (int i = 0; i < CROWD; i++) {
		snprintf(text, sizeof(text), "echo %s > f", names[i]);
		CHECK(enter(names[i]) && says(names[i], text, ""));
	}
	crowd_is_done = false;
	CHECK(pthread_create(&collector, NULL, run_collector, NULL) == 0);
	for (int i = 0; i < CROWD; i++)
		CHECK(pthread_create(&threads[i], NULL, run_worker, names[i]) == 0);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], &got[i]);
	crowd_is_done = true;
	pthread_join(collector, NULL);
	for (int i = 0; i < CROWD; i++) {
		snprintf(want, sizeof(want), "%s\n", names[i]);
		CHECK(got[i] && says(names[i], "cat f", want));
	}
	clean();
	collect_all();
	CHECK(on_disk() == 0);
}

static int run_contract(bool dir)
{
	find_keeper();
	new_home(dir);
	RUN(a_snapshot_of_a_running_session);
	RUN(a_snapshot_of_a_hibernated_session);
	RUN(a_snapshot_with_a_stop);
	RUN(a_paused_session_stays_paused);
	RUN(names_are_checked);
	RUN(impossible_requests_are_refused);
	RUN(snapshots_are_listed);
	RUN(forks_have_their_own_files);
	RUN(forks_of_hibernated_sessions_and_of_snapshots);
	RUN(all_forks_or_none);
	RUN(a_new_session_from_a_snapshot);
	RUN(unreferenced_layers_are_removed);
	RUN(files_without_a_row_are_removed);
	RUN(a_layer_just_sealed_stays);
	RUN(holds_end_with_the_engine);
	RUN(a_session_knows_when_it_is_durable);
	RUN(layers_are_synced_in_the_background);
	RUN(deep_stacks_are_flattened);
	RUN(stacks_do_not_grow_on_btrfs);
	RUN(too_deep_a_stack_is_refused_until_it_is_flattened);
	RUN(concurrent_calls_do_not_remove_new_layers);
	remove_home();
	return tap_done();
}

#endif
