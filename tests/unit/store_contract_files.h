/* SPDX-License-Identifier: Apache-2.0 */
/* Part of store_contract.h: layers, snapshots, execs, idempotency keys. */
#ifndef LODGE_TESTS_STORE_CONTRACT_FILES_H
#define LODGE_TESTS_STORE_CONTRACT_FILES_H

static int add_layer(struct store *st, const char *id, const char *parent, int64_t at)
{
	struct store_layer l = { .template = "host", .created_at = at };
	struct err err;

	snprintf(l.id, sizeof(l.id), "%s", id);
	snprintf(l.parent, sizeof(l.parent), "%s", parent);
	return store_layer_add(st, &l, &err) < 0 ? -(int)err.code : 0;
}

static int64_t refs(struct store *st, const char *id)
{
	struct err err;
	int64_t n = -1;

	return store_layer_refs(st, id, &n, &err) < 0 ? -1 : n;
}

/* The ids of unreferenced layers, joined. */
static const char *unreferenced(struct store *st, int64_t before)
{
	static char text[256];
	struct store_layer_list l;
	struct err err;

	text[0] = '\0';
	if (store_layer_find_unreferenced(st, before, 10, &l, &err) < 0)
		return "error";
	for (size_t i = 0; i < l.count; i++)
		strcat(strcat(text, i ? " " : ""), l.items[i].id);
	store_layer_list_fini(&l);
	return text;
}

/* The ids of layers that are not durable, joined. */
static const char *unsettled(struct store *st, const char *after)
{
	static char text[256];
	struct store_layer_list l;
	struct err err;

	text[0] = '\0';
	if (store_layer_find_unsynced(st, after, 2, &l, &err) < 0)
		return "error";
	for (size_t i = 0; i < l.count; i++)
		strcat(strcat(text, i ? " " : ""), l.items[i].id);
	store_layer_list_fini(&l);
	return text;
}

static void a_layer_has_a_parent(void)
{
	struct store_layer l = { .id = "l1", .bytes = 7, .created_at = 5 }, got;

	OPEN();
	CHECK(store_layer_add(st, &l, &err) == -1 && err.code == ERR_INVALID);
	strcpy(l.template, "debian");
	CHECK(!store_layer_add(st, &l, &err));
	strcpy(l.id, "l2");
	strcpy(l.parent, "l1");
	strcpy(l.template, "host");
	CHECK(!store_layer_add(st, &l, &err));
	CHECK(!store_layer_get(st, "l1", &got, &err) && got.bytes == 7 && got.created_at == 5);
	CHECK_STR(got.template, "debian");
	CHECK_STR(got.parent, "");
	CHECK(!store_layer_get(st, "l2", &got, &err));
	CHECK_STR(got.template, "host");
	CHECK_STR(got.parent, "l1");
}

static void layers_that_are_not_durable_are_listed(void)
{
	OPEN();
	CHECK_STR(unsettled(st, ""), "");
	CHECK(!add_layer(st, "l3", "", 1) && !add_layer(st, "l1", "", 2) &&
	      !add_layer(st, "l4", "", 3) && !add_layer(st, "l2", "", 4));
	CHECK_STR(unsettled(st, ""), "l1 l2");
	CHECK_STR(unsettled(st, "l2"), "l3 l4");
	CHECK_STR(unsettled(st, "l4"), "");
	CHECK(!store_layer_mark_durable(st, "l1", 9, &err));
	CHECK_STR(unsettled(st, ""), "l2 l3");
}

static void a_layer_stays_while_something_refers_to_it(void)
{
	struct store_session s = session("s1");
	struct store_snapshot n = { .id = "n1", .tenant = "t", .session = "s1", .layer = "l2" };

	OPEN();
	CHECK(!add_layer(st, "l1", "", 10) && !add_layer(st, "l2", "l1", 20));
	CHECK(add_layer(st, "l1", "", 30) == -ERR_CONFLICT);
	CHECK(add_layer(st, "l3", "nosuch", 30) == -ERR_CONFLICT);
	CHECK(add_layer(st, "l3", "l3", 30) == -ERR_INVALID);
	CHECK(refs(st, "l1") == 1 && refs(st, "l2") == 0 && refs(st, "") == 0);
	CHECK_STR(unreferenced(st, 20), ""); /* just created: not referenced yet */
	CHECK_STR(unreferenced(st, 21), "l2");
	strcpy(s.layer, "l2");
	CHECK(!store_session_create(st, &s, NULL, &err));
	CHECK(!store_snapshot_add(st, &n, &err));
	CHECK(refs(st, "l2") == 2);
	CHECK(store_layer_remove(st, "l2", &err) == -1 && err.code == ERR_CONFLICT);
	CHECK_STR(unreferenced(st, 100), "");
	s.layer[0] = '\0';
	CHECK(!store_session_update(st, &s, NULL, NULL, &err) && refs(st, "l2") == 1);
	CHECK(!store_snapshot_remove(st, "n1", &err));
	CHECK_STR(unreferenced(st, 100), "l2");
	CHECK(!store_layer_remove(st, "l2", &err));
	CHECK_STR(unreferenced(st, 100), "l1");
	CHECK(!store_layer_remove(st, "l1", &err));
	CHECK(store_layer_remove(st, "l1", &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void a_hold_counts_once_per_holder(void)
{
	struct store_layer l;

	OPEN();
	CHECK(!add_layer(st, "l1", "", 10));
	CHECK(!store_layer_ref(st, "l1", "template:x", &err));
	CHECK(!store_layer_ref(st, "l1", "template:x", &err) && refs(st, "l1") == 1);
	CHECK(!store_layer_ref(st, "l1", "export:9", &err) && refs(st, "l1") == 2);
	CHECK(store_layer_ref(st, "nosuch", "x", &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_layer_remove(st, "l1", &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!store_layer_unref(st, "l1", "template:x", &err));
	CHECK(!store_layer_unref(st, "l1", "template:x", &err) && refs(st, "l1") == 1);
	CHECK(!store_layer_unref(st, "l1", "export:9", &err) && refs(st, "l1") == 0);
	CHECK(!store_layer_get(st, "l1", &l, &err) && !l.durable && l.bytes == 0);
	CHECK(!store_layer_mark_durable(st, "l1", 4096, &err));
	CHECK(!store_layer_get(st, "l1", &l, &err) && l.durable && l.bytes == 4096);
	CHECK(store_layer_mark_durable(st, "l2", 1, &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void holds_of_one_kind_are_released_together(void)
{
	OPEN();
	CHECK(!add_layer(st, "l1", "", 10) && !add_layer(st, "l2", "", 10));
	CHECK(!store_layer_ref(st, "l1", "fork:1", &err));
	CHECK(!store_layer_ref(st, "l1", "forks:1", &err));
	CHECK(!store_layer_ref(st, "l2", "fork:2", &err));
	CHECK(!store_layer_release(st, "fork:", &err));
	CHECK(refs(st, "l1") == 1 && refs(st, "l2") == 0);
	CHECK(!store_layer_release(st, "fork:", &err) && refs(st, "l1") == 1);
	CHECK(store_layer_release(st, "", &err) == -1 && err.code == ERR_INVALID);
}

/* Ids of the sessions in state 4 or 5 with a deeper stack, joined. */
static const char *deep(struct store *st, unsigned depth, unsigned limit)
{
	static char text[256];
	struct store_session_list l;
	struct err err;

	text[0] = '\0';
	if (store_session_find_deep(st, 1 << 4 | 1 << 5, depth, limit, &l, &err) < 0)
		return "error";
	for (size_t i = 0; i < l.count; i++)
		strcat(strcat(text, i ? " " : ""), l.items[i].id);
	store_session_list_fini(&l);
	return text;
}

static void deep_stacks_are_found(void)
{
	OPEN();
	CHECK(!add_layer(st, "l1", "", 1) && !add_layer(st, "l2", "l1", 2) &&
	      !add_layer(st, "l3", "l2", 3));
	for (int i = 0; i < 5; i++) {
		struct store_session s = session("s");

		snprintf(s.id, sizeof(s.id), "s%d", i);
		snprintf(s.layer, sizeof(s.layer), i < 4 ? "l%d" : "", i < 3 ? i + 1 : 3);
		s.state = i == 3 ? 2 : 4 + i % 2;
		CHECK(!store_session_create(st, &s, NULL, &err));
	}
	CHECK_STR(deep(st, 3, 10), "");
	CHECK_STR(deep(st, 2, 10), "s2");
	CHECK_STR(deep(st, 1, 10), "s1 s2");
	CHECK_STR(deep(st, 1, 1), "s1");
	CHECK_STR(deep(st, 0, 10), "s0 s1 s2");
	CHECK_STR(deep(st, 1, 0), "error");
}

static void names_of_snapshots_are_unique_per_session(void)
{
	struct store_snapshot n = { .tenant = "t", .session = "s1", .layer = "l1", .bytes = 5 },
			      got;

	OPEN();
	CHECK(!add_layer(st, "l1", "", 10));
	strcpy(n.id, "n1");
	CHECK(!store_snapshot_add(st, &n, &err));
	strcpy(n.id, "n2"); /* no name: no conflict */
	CHECK(!store_snapshot_add(st, &n, &err));
	strcpy(n.id, "n3");
	strcpy(n.name, "before");
	CHECK(!store_snapshot_add(st, &n, &err));
	CHECK(store_snapshot_add(st, &n, &err) == -1 && err.code == ERR_CONFLICT);
	strcpy(n.id, "n4");
	CHECK(store_snapshot_add(st, &n, &err) == -1 && err.code == ERR_CONFLICT);
	strcpy(n.session, "s2");
	CHECK(!store_snapshot_add(st, &n, &err));
	strcpy(n.id, "n5");
	strcpy(n.name, "other");
	strcpy(n.layer, "nosuch");
	CHECK(store_snapshot_add(st, &n, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!store_snapshot_get(st, "n3", &got, &err) && got.bytes == 5);
	CHECK_STR(got.name, "before");
	CHECK(!store_snapshot_find(st, "s1", "before", &got, &err));
	CHECK_STR(got.id, "n3");
	CHECK(!store_snapshot_find(st, "s2", "before", &got, &err));
	CHECK_STR(got.id, "n4");
	CHECK(store_snapshot_find(st, "s1", "", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_snapshot_find(st, "s1", "other", &got, &err) == -1 &&
	      err.code == ERR_NOT_FOUND);
	CHECK(store_snapshot_remove(st, "n9", &err) == -1 && err.code == ERR_NOT_FOUND);
}

/* The ids of a page, joined, with "..." if more follow. */
static const char *snapshots(struct store *st, struct store_snapshot_filter f, unsigned limit,
			     int64_t *after)
{
	static char text[256];
	struct store_page page = { .after = *after, .limit = limit };
	struct store_snapshot_list l;
	struct err err;

	text[0] = '\0';
	if (store_snapshot_list(st, &f, page, &l, &err) < 0)
		return err.code == ERR_INVALID ? "invalid" : "error";
	for (size_t i = 0; i < l.count; i++)
		strcat(strcat(text, i ? " " : ""), l.items[i].id);
	strcat(text, l.next ? " ..." : "");
	*after = l.next;
	store_snapshot_list_fini(&l);
	return text;
}

#define SNAPSHOTS(...)                                                                             \
	snapshots(st, (struct store_snapshot_filter){ __VA_ARGS__ }, 10, &(int64_t){ 0 })

/* Snapshots of sessions s1 of ann, s2 of bob, s3 without a user, and of no session; n5 is of
 * another tenant. */
static void add_snapshots(struct store *st)
{
	static const char *const of[] = { "s1", "s2", "s3", "", "s1", "s1" };
	struct err err;

	CHECK(!add_layer(st, "l1", "", 10));
	for (int i = 0; i < 3; i++) {
		struct store_session s = session(of[i]);

		strcpy(s.user, i == 0 ? "ann" : i == 1 ? "bob" : "");
		CHECK(!store_session_create(st, &s, NULL, &err));
	}
	for (int i = 0; i < 6; i++) {
		struct store_snapshot n = { .layer = "l1" };

		snprintf(n.id, sizeof(n.id), "n%d", i + 1);
		strcpy(n.tenant, i == 4 ? "t2" : "t");
		strcpy(n.session, of[i]);
		CHECK(!store_snapshot_add(st, &n, &err));
	}
}

static void snapshots_are_listed_by_user(void)
{
	int64_t after = 0, changes;

	OPEN();
	add_snapshots(st);
	changes = store_changes(st);
	CHECK_STR(SNAPSHOTS("t"), "n1 n2 n3 n4 n6");
	CHECK_STR(SNAPSHOTS("t2"), "n5");
	CHECK_STR(SNAPSHOTS("t3"), "");
	CHECK_STR(SNAPSHOTS("t", .session = "s1"), "n1 n6");
	CHECK_STR(SNAPSHOTS("t", .session = "s9"), "");
	CHECK_STR(SNAPSHOTS("t", .user = "ann"), "n1 n6");
	CHECK_STR(SNAPSHOTS("t", .user = "bob"), "n2");
	CHECK_STR(SNAPSHOTS("t", .user = "eve"), "");
	CHECK_STR(SNAPSHOTS("t", "s1", "ann"), "n1 n6");
	CHECK_STR(SNAPSHOTS("t", "s1", "bob"), "");
	CHECK_STR(SNAPSHOTS(NULL), "invalid");
	CHECK_STR(SNAPSHOTS("t", .session = ""), "invalid");
	CHECK_STR(SNAPSHOTS("t", .user = ""), "invalid");
	CHECK_STR(snapshots(st, (struct store_snapshot_filter){ "t" }, 3, &after), "n1 n2 n3 ...");
	CHECK_STR(snapshots(st, (struct store_snapshot_filter){ "t" }, 2, &after), "n4 n6");
	CHECK_STR(snapshots(st, (struct store_snapshot_filter){ "t", .user = "ann" }, 1, &after),
		  "n1 ...");
	CHECK_STR(snapshots(st, (struct store_snapshot_filter){ "t", .user = "ann" }, 1, &after),
		  "n6");
	CHECK(store_changes(st) == changes);
}

static void a_snapshot_belongs_to_its_user_while_the_tombstone_exists(void)
{
	struct store_session s;

	OPEN();
	add_snapshots(st);
	CHECK(!store_session_get(st, "s1", &s, &err));
	s.cause.at = 50;
	CHECK(!store_session_mark_destroyed(st, &s, NULL, NULL, &err));
	store_session_fini(&s);
	CHECK_STR(SNAPSHOTS("t", .user = "ann"), "n1 n6");
	CHECK(!store_session_remove(st, "s1", &err));
	CHECK_STR(SNAPSHOTS("t", .user = "ann"), "n1 n6");
	CHECK_STR(SNAPSHOTS("t", .user = "bob"), "n2");
	CHECK(!store_tombstone_prune(st, 51, &err));
	CHECK_STR(SNAPSHOTS("t", .user = "ann"), "");
	CHECK_STR(SNAPSHOTS("t", .session = "s1"), "n1 n6");
	CHECK_STR(SNAPSHOTS("t"), "n1 n2 n3 n4 n6");
}

/* ---- commands ------------------------------------------------------------------------------ */

static void a_command_ends_once(void)
{
	static char command[] = "[\"echo\",\"hi\"]";
	struct store_exec e = { .id = "e1",
				.tenant = "t",
				.session = "s1",
				.incarnation = 2,
				.number = 7,
				.background = true,
				.started_at = 50,
				.command = command };
	struct store_exec end = { .id = "e1",
				  .tenant = "t",
				  .session = "s1",
				  .state = 1,
				  .timed_out = true,
				  .oom_killed = true,
				  .truncated = true,
				  .exit_code = -1,
				  .signal = 9,
				  .ended_at = 60,
				  .stdout_bytes = 1,
				  .stderr_bytes = 2,
				  .cpu_ms = 3,
				  .max_rss_bytes = 4 };
	struct store_exec got;

	OPEN();
	CHECK(!store_exec_record(st, &e, &err) && e.seq > 0);
	CHECK(store_exec_record(st, &e, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!store_exec_finish(st, &end, &err));
	CHECK(!store_exec_get(st, "e1", &got, &err));
	CHECK(got.state == 1 && got.timed_out && got.oom_killed && got.truncated && got.background);
	CHECK(got.exit_code == -1 && got.signal == 9 && got.started_at == 50 && got.ended_at == 60);
	CHECK(got.stdout_bytes == 1 && got.stderr_bytes == 2 && got.cpu_ms == 3);
	CHECK(got.max_rss_bytes == 4 && got.incarnation == 2 && got.number == 7);
	CHECK_STR(got.command, command);
	store_exec_fini(&got);
	CHECK(store_exec_finish(st, &end, &err) == -1 && err.code == ERR_CONFLICT);
	strcpy(end.id, "e2");
	CHECK(store_exec_finish(st, &end, &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void commands_of_a_lost_sandbox_end_together(void)
{
	struct store_exec e = { .tenant = "t", .session = "s1" }, got;
	const struct store_exec end = {
		.state = 3, .signal = 9, .exit_code = -1, .ended_at = 77, .reason = "why"
	};
	struct store_exec_list l;

	OPEN();
	for (int i = 0; i < 5; i++) {
		snprintf(e.id, sizeof(e.id), "e%d", i);
		strcpy(e.session, i == 4 ? "s2" : "s1");
		e.state = i == 0 ? 1 : 0;
		e.ended_at = i == 0 ? 10 : 0;
		CHECK(!store_exec_record(st, &e, &err));
	}
	CHECK(!store_exec_finish_all(st, "s1", &end, &err));
	CHECK(!store_exec_list(st, "s1", all, &l, &err) && l.count == 4);
	CHECK(l.items[0].state == 1 && l.items[0].ended_at == 10);
	for (int i = 1; i < 4; i++)
		CHECK(l.items[i].state == 3 && l.items[i].ended_at == 77 &&
		      l.items[i].signal == 9 && l.items[i].exit_code == -1 &&
		      !strcmp(l.items[i].reason, "why"));
	store_exec_list_fini(&l);
	CHECK(!store_exec_list(st, "s1", (struct store_page){ .limit = 4 }, &l, &err));
	CHECK(l.count == 4 && !l.next); /* a full last page */
	store_exec_list_fini(&l);
	CHECK(!store_exec_list(st, "s1", (struct store_page){ .after = 2, .limit = 1 }, &l, &err));
	CHECK(l.count == 1 && l.next == 3);
	store_exec_list_fini(&l);
	CHECK(!store_exec_prune(st, 77, &err)); /* e0 only: e4 still runs */
	CHECK(store_exec_get(st, "e0", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_exec_prune(st, 1000, &err));
	CHECK(!store_exec_list(st, "s1", all, &l, &err) && l.count == 0);
	store_exec_list_fini(&l);
	CHECK(!store_exec_get(st, "e4", &got, &err) && got.state == 0);
	store_exec_fini(&got);
}

static void a_repeated_request_returns_the_first_result(void)
{
	struct store_once o = {
		.tenant = "t", .scope = "create", .key = "k", .target = "s1", .created_at = 10
	};
	struct store_once again = o, first;

	OPEN();
	CHECK(store_once_find(st, &o, &first, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_once_claim(st, &o, NULL, &err));
	strcpy(again.target, "s2");
	CHECK(!store_once_find(st, &again, &first, &err));
	CHECK_STR(first.target, "s1");
	CHECK(store_once_claim(st, &again, &first, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK_STR(first.target, "s1");
	CHECK(store_once_claim(st, &again, NULL, &err) == -1);
	strcpy(again.scope, "s1");
	CHECK(!store_once_claim(st, &again, NULL, &err));
	strcpy(again.tenant, "t2");
	CHECK(!store_once_claim(st, &again, NULL, &err));
	CHECK(!store_once_prune(st, 11, &err));
	CHECK(!store_once_claim(st, &o, NULL, &err));
}

/* ---- numbers of records ---------------------------------------------------------------------- */

static void add_records(struct store *st, const char *tenant, const char *session, int n)
{
	struct err err;

	for (int i = 0; i < n; i++) {
		struct store_exec x = { .state = i ? 1 : 0, .ended_at = 10 + i };
		struct store_event e = event("tick");
		struct store_once o = { .scope = "create", .target = "x", .created_at = 10 + i };

		snprintf(x.id, sizeof(x.id), "%s-%d", session, i);
		snprintf(o.key, sizeof(o.key), "%s-%d", session, i);
		strcpy(x.session, session);
		strcpy(x.tenant, tenant);
		strcpy(e.tenant, tenant);
		strcpy(o.tenant, tenant);
		CHECK(!store_exec_record(st, &x, &err) && !store_event_append(st, &e, &err) &&
		      !store_once_claim(st, &o, NULL, &err));
	}
}

static size_t count_execs(struct store *st, const char *session)
{
	struct store_exec_list l;
	struct err err;
	size_t n;

	if (store_exec_list(st, session, all, &l, &err) < 0)
		return SIZE_MAX;
	n = l.count;
	store_exec_list_fini(&l);
	return n;
}

static size_t count_events(struct store *st, const char *tenant)
{
	struct store_event_list l;
	struct err err;
	size_t n;

	if (store_event_since(st, 0, tenant, NULL, 100, &l, &err) < 0)
		return SIZE_MAX;
	n = l.count;
	store_event_list_fini(&l);
	return n;
}

static void the_oldest_records_beyond_a_maximum_go(void)
{
	struct store_once o = { .tenant = "t1", .scope = "create", .key = "s1-5" }, got;
	struct store_exec x;

	OPEN();
	add_records(st, "t1", "s1", 10);
	add_records(st, "t2", "s2", 4);
	CHECK(!store_exec_trim(st, "s1", 10, &err) && count_execs(st, "s1") == 10);
	CHECK(!store_exec_trim(st, "s1", 6, &err) && count_execs(st, "s1") == 7);
	CHECK(!store_exec_get(st, "s1-0", &x, &err)); /* it runs */
	store_exec_fini(&x);
	CHECK(store_exec_get(st, "s1-3", &x, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_trim(st, 5, 4, &err));
	CHECK(count_execs(st, "s1") == 5 && count_execs(st, "s2") == 4);
	CHECK(count_events(st, "t1") == 4 && count_events(st, "t2") == 4);
	CHECK(store_once_find(st, &o, &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	strcpy(o.key, "s1-6");
	CHECK(!store_once_find(st, &o, &got, &err));
	CHECK(!store_trim(st, 2, 100, &err));
	CHECK(count_execs(st, "s1") == 3 && count_execs(st, "s2") == 3); /* with one that runs */
}

static void run_contract_files(void)
{
	RUN(the_oldest_records_beyond_a_maximum_go);
	RUN(a_layer_has_a_parent);
	RUN(layers_that_are_not_durable_are_listed);
	RUN(a_layer_stays_while_something_refers_to_it);
	RUN(a_hold_counts_once_per_holder);
	RUN(holds_of_one_kind_are_released_together);
	RUN(deep_stacks_are_found);
	RUN(names_of_snapshots_are_unique_per_session);
	RUN(snapshots_are_listed_by_user);
	RUN(a_snapshot_belongs_to_its_user_while_the_tombstone_exists);
	RUN(a_command_ends_once);
	RUN(commands_of_a_lost_sandbox_end_together);
	RUN(a_repeated_request_returns_the_first_result);
}

#endif
