/* SPDX-License-Identifier: Apache-2.0 */
/* Part of store_contract.h: sessions, their keys, tombstones, lists. */
#ifndef LODGE_TESTS_STORE_CONTRACT_SESSION_H
#define LODGE_TESTS_STORE_CONTRACT_SESSION_H

/* ---- sessions ------------------------------------------------------------------------------ */

static void a_session_is_read_back_unchanged(void)
{
	static char spec[] = "{\"limits\":{\"pids\":7}}", meta[] = "{\"a\":\"b\"}";
	static struct store_binding b[2] = { { "user", "u1" },
					     { "thread", "th \xc3\xa9\n'\";--" } };
	static struct store_session in = {
		/* static: its padding is zero, for memcmp() */
		.id = "s1",
		.tenant = "t",
		.user = "u1",
		.template = "host",
		.sandbox = "b1",
		.snapshot = "n1",
		.project = "p1",
		.fragment = "f1",
		.state = 2,
		.runtime = 2,
		.on_idle = 1,
		.on_expire = 1,
		.paused = true,
		.generation = 3,
		.incarnation = 4,
		.created_at = 10,
		.started_at = 11,
		.last_activity_at = 12,
		.idle_timeout_ms = 13,
		.max_lifetime_ms = 14,
		.lifetime_ms = 21,
		.delete_after_ms = 22,
		.hibernated_at = 23,
		.hibernate_at = 15,
		.expires_at = INT64_MAX,
		.due_at = 16,
		.memory_bytes = 1ll << 40,
		.disk_bytes = 17,
		.cause = { "idle", "why", "actor", 18 },
		.spec = spec,
		.metadata = meta,
		.bindings = b,
		.nbindings = 2,
	};
	struct store_session got;

	OPEN();
	CHECK(!store_session_create(st, &in, NULL, &err));
	CHECK(in.version == 1 && in.seq > 0);
	CHECK(!store_session_get(st, "s1", &got, &err));
	CHECK_STR(got.spec, spec);
	CHECK_STR(got.metadata, meta);
	CHECK(got.nbindings == 2);
	CHECK_STR(got.bindings[0].kind, "thread"); /* sorted by kind and key */
	CHECK_STR(got.bindings[0].key, b[1].key);
	CHECK_STR(got.bindings[1].key, "u1");
	store_session_fini(&got);
	got.spec = spec;
	got.metadata = meta;
	got.bindings = b;
	got.nbindings = 2;
	CHECK(memcmp(&got, &in, sizeof(in)) == 0);
}

static void a_session_is_found_by_each_of_its_keys(void)
{
	struct store_binding b[2] = { { "user", "u1" }, { "thread", "th" } },
			     other = { "user", "th" };
	struct store_session s = session("s1"), got;

	OPEN();
	s.bindings = b;
	s.nbindings = 2;
	CHECK(!store_session_create(st, &s, NULL, &err));
	for (int i = 0; i < 2; i++) {
		CHECK(!store_session_find(st, "t", &b[i], &got, &err));
		CHECK_STR(got.id, "s1");
		store_session_fini(&got);
	}
	CHECK(store_session_find(st, "t", &other, &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_session_find(st, "t2", &b[0], &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_session_get(st, "s2", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void a_key_is_unique_within_its_tenant_and_a_refused_create_leaves_nothing(void)
{
	struct store_binding b1, b2[2] = { { "key", "fresh" }, { "key", "taken" } };
	struct store_session s1 = bound("s1", &b1, "taken"), s2 = session("s2"), got;
	struct store_event ev = event("created");

	OPEN();
	CHECK(!store_session_create(st, &s1, NULL, &err));
	s2.bindings = b2;
	s2.nbindings = 2;
	CHECK(store_session_create(st, &s2, &ev, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(s2.version == 0 && s2.seq == 0);
	CHECK(store_session_get(st, "s2", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_session_find(st, "t", &b2[0], &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(last_event(st) == 0);
	strcpy(s2.tenant, "t2");
	CHECK(!store_session_create(st, &s2, NULL, &err));
	CHECK(store_session_create(st, &s2, NULL, &err) == -1 && err.code == ERR_CONFLICT);
}

static void an_invalid_record_is_refused(void)
{
	static char list[] = "[1]", broken[] = "{\"a\":", twice[] = "{\"a\":1,\"a\":2}";
	char *const bad[] = { list, broken, twice };
	struct store_binding b;
	struct store_session s = session("");

	OPEN();
	CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_INVALID);
	s = session("s1");
	s.tenant[0] = '\0';
	CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_INVALID);
	s = bound("s1", &b, "");
	CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_INVALID);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s = session("s1");
		s.metadata = bad[i];
		CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_INVALID);
	}
	s = session("s1");
	strcpy(s.layer, "nosuch");
	CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_changes(st) == 0 || last_event(st) == 0);
}

static void an_update_needs_the_current_version(void)
{
	struct store_session s = session("s1"), stale, now;

	OPEN();
	CHECK(!store_session_create(st, &s, NULL, &err));
	stale = s;
	s.state = 3;
	strcpy(s.template, "u");
	CHECK(!store_session_update(st, &s, NULL, NULL, &err) && s.version == 2);
	stale.state = 5;
	CHECK(store_session_update(st, &stale, NULL, &now, &err) == -1);
	CHECK(err.code == ERR_CONFLICT && stale.version == 1);
	CHECK_STR(err.msg, "session s1 is at version 2, not 1");
	CHECK(now.version == 2 && now.state == 3);
	CHECK_STR(now.template, "u");
	store_session_fini(&now);
	CHECK(store_session_update(st, &stale, NULL, NULL, &err) == -1 && err.code == ERR_CONFLICT);
	stale.version = 2;
	CHECK(!store_session_update(st, &stale, NULL, NULL, &err) && stale.version == 3);
	CHECK(!store_session_get(st, "s1", &now, &err) && now.state == 5 && !now.template[0]);
	store_session_fini(&now);
	stale = session("s2");
	CHECK(store_session_update(st, &stale, NULL, &now, &err) == -1 &&
	      err.code == ERR_NOT_FOUND);
}

static void an_update_does_not_change_owner_and_keys(void)
{
	struct store_binding b;
	struct store_session s = bound("s1", &b, "k"), got;

	OPEN();
	CHECK(!store_session_create(st, &s, NULL, &err));
	strcpy(s.tenant, "t2");
	strcpy(s.user, "u2");
	s.created_at = 1;
	s.bindings = NULL;
	s.nbindings = 0;
	CHECK(!store_session_update(st, &s, NULL, NULL, &err));
	CHECK(!store_session_find(st, "t", &b, &got, &err) && got.nbindings == 1);
	CHECK_STR(got.tenant, "t");
	CHECK(!got.user[0] && got.created_at == 1000);
	store_session_fini(&got);
}

static void a_change_and_its_event_are_atomic(void)
{
	struct store_session s = session("s1"), stale;
	struct store_event ev = event("created"), bad = { 0 };
	struct store_event_list l;

	OPEN();
	CHECK(!store_session_create(st, &s, &ev, &err));
	stale = s;
	strcpy(ev.kind, "moved");
	CHECK(!store_session_update(st, &s, &ev, NULL, &err));
	CHECK(store_session_update(st, &stale, &ev, NULL, &err) == -1);
	CHECK(store_session_update(st, &s, &bad, NULL, &err) == -1 && err.code == ERR_INVALID);
	CHECK(s.version == 2);
	CHECK(!store_event_since(st, 0, NULL, NULL, 100, &l, &err) && l.count == 2);
	CHECK_STR(l.items[0].kind, "created");
	CHECK_STR(l.items[0].tenant, "t");
	CHECK_STR(l.items[0].session, "s1");
	CHECK_STR(l.items[1].kind, "moved");
	CHECK_STR(l.items[1].cause.actor, "alice");
	CHECK(l.items[0].version == 1 && l.items[1].version == 2 && l.items[1].cause.at == 5000);
	store_event_list_fini(&l);
}

static void a_key_moves_from_one_session_to_another(void)
{
	struct store_binding b, loose = { "key", "loose" };
	struct store_session s1 = bound("s1", &b, "k"), s2 = session("s2"), s3 = session("s3"), got;
	struct store_user u = { .tenant = "t", .id = "u1", .project = "p2" }, seen;

	OPEN();
	strcpy(s3.tenant, "t2");
	CHECK(!store_session_create(st, &s1, NULL, &err) &&
	      !store_session_create(st, &s2, NULL, &err));
	CHECK(!store_session_create(st, &s3, NULL, &err));
	CHECK(store_session_rebind(st, "t", &b, "s2", "s1", &u, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(store_session_rebind(st, "t", &b, NULL, "s2", &u, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(store_session_rebind(st, "t", &b, "s1", "s9", &u, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(store_session_rebind(st, "t", &b, "s1", "s3", &u, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(store_user_get(st, "t", "u1", &seen, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_session_find(st, "t", &b, &got, &err) && got.version == 1);
	CHECK_STR(got.id, "s1");
	store_session_fini(&got);
	CHECK(!store_session_rebind(st, "t", &b, "s1", "s2", &u, &err));
	CHECK(!store_session_find(st, "t", &b, &got, &err) && got.version == 2);
	CHECK_STR(got.id, "s2");
	store_session_fini(&got);
	CHECK(!store_session_get(st, "s1", &got, &err) && got.version == 2 && got.nbindings == 0);
	store_session_fini(&got);
	CHECK(!store_user_get(st, "t", "u1", &seen, &err));
	CHECK_STR(seen.project, "p2");
	CHECK(!store_session_rebind(st, "t", &loose, NULL, "s1", NULL, &err));
	CHECK(!store_session_rebind(st, "t", &loose, "s1", NULL, NULL, &err));
	CHECK(store_session_find(st, "t", &loose, &got, &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void a_failed_session_leaves_only_its_event(void)
{
	struct store_binding b, same;
	struct store_session s = bound("s1", &b, "k"), next = bound("s2", &same, "k"), got;
	struct store_event ev = event("refuse");
	struct store_tombstone t;

	OPEN();
	CHECK(!store_session_create(st, &s, NULL, &err));
	s.version = 7;
	CHECK(store_session_retract(st, &s, &ev, &err) == -1 && err.code == ERR_NOT_FOUND);
	s.version = 1;
	CHECK(!store_session_retract(st, &s, &ev, &err));
	CHECK(store_session_retract(st, &s, &ev, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(last_event(st) == 1);
	CHECK(store_session_get(st, "s1", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_tombstone_get(st, "s1", &t, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_session_create(st, &next, NULL, &err));
}

static void a_destroyed_session_frees_its_keys_and_leaves_a_tombstone(void)
{
	struct store_binding b, same;
	struct store_session s = bound("s1", &b, "k"), next = bound("s2", &same, "k"), got;
	struct store_event ev = event("destroyed");
	struct store_tombstone t;

	OPEN();
	strcpy(s.user, "u");
	CHECK(!store_session_create(st, &s, NULL, &err));
	CHECK(store_session_remove(st, "s1", &err) == -1 && err.code == ERR_CONFLICT);
	s.cause = (struct store_cause){ "asked", "by hand", "alice", 7000 };
	s.version = 9;
	CHECK(store_session_mark_destroyed(st, &s, &ev, NULL, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(store_tombstone_get(st, "s1", &t, &err) == -1 && err.code == ERR_NOT_FOUND);
	s.version = 1;
	CHECK(!store_session_mark_destroyed(st, &s, &ev, NULL, &err) && s.version == 2);
	CHECK(last_event(st) == 1);
	CHECK(!store_session_get(st, "s1", &got, &err) && got.nbindings == 0);
	store_session_fini(&got);
	CHECK(store_session_find(st, "t", &b, &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_session_create(st, &next, NULL, &err));
	CHECK(!store_session_remove(st, "s1", &err));
	CHECK(store_session_remove(st, "s1", &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_tombstone_get(st, "s1", &t, &err) && t.cause.at == 7000 &&
	      t.created_at == 1000);
	CHECK_STR(t.cause.code, "asked");
	CHECK_STR(t.cause.text, "by hand");
	CHECK_STR(t.cause.actor, "alice");
	CHECK_STR(t.user, "u");
	CHECK(!store_tombstone_find(st, "t", &b, &t, &err));
	CHECK_STR(t.session, "s1");
	CHECK(store_tombstone_find(st, "t2", &b, &t, &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void destroying_twice_keeps_the_first_cause(void)
{
	struct store_binding b, same;
	struct store_session s = bound("s1", &b, "k"), next = bound("s2", &same, "k");
	struct store_tombstone t;

	OPEN();
	CHECK(!store_session_create(st, &s, NULL, &err));
	strcpy(s.cause.code, "first");
	CHECK(!store_session_mark_destroyed(st, &s, NULL, NULL, &err));
	strcpy(s.cause.code, "second");
	CHECK(!store_session_mark_destroyed(st, &s, NULL, NULL, &err));
	CHECK(!store_tombstone_find(st, "t", &b, &t, &err));
	CHECK_STR(t.cause.code, "first");
	CHECK(!store_session_create(st, &next, NULL, &err));
	CHECK(!store_session_mark_destroyed(st, &next, NULL, NULL, &err));
	CHECK(!store_tombstone_find(st, "t", &b, &t, &err));
	CHECK_STR(t.session, "s2"); /* the last session with this key */
}

static void tombstones_are_pruned_by_number_and_time(void)
{
	struct store_binding b[4];
	struct store_tombstone t;

	OPEN();
	for (int i = 0; i < 4; i++) {
		char id[8];
		struct store_session s;

		snprintf(id, sizeof(id), "s%d", i);
		s = bound(id, &b[i], id);
		CHECK(!store_session_create(st, &s, NULL, &err));
		s.cause.at = 100 * i;
		CHECK(!store_session_mark_destroyed(st, &s, NULL, NULL, &err));
	}
	CHECK(!store_trim(st, 3, 3, &err));
	CHECK(store_tombstone_get(st, "s0", &t, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_tombstone_get(st, "s1", &t, &err));
	CHECK(!store_tombstone_prune(st, 101, &err));
	CHECK(store_tombstone_find(st, "t", &b[1], &t, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_tombstone_find(st, "t", &b[2], &t, &err));
	CHECK_STR(t.session, "s2");
}

/* ---- lists --------------------------------------------------------------------------------- */

static int add_sessions(struct store *st, int n)
{
	static char red[] = "{\"colour\":\"red\",\"n\":1}", blue[] = "{\"colour\":\"blue\"}";
	struct err err;

	for (int i = 0; i < n; i++) {
		struct store_session s = { .tenant = "t" };

		snprintf(s.id, sizeof(s.id), "s%03d", 997 * i % n); /* ids are not sorted */
		strcpy(s.user, i % 3 ? "u1" : "u0");
		strcpy(s.project, i % 4 ? "" : "p");
		s.state = (uint8_t)(i % 5);
		s.metadata = i % 2 ? red : blue;
		s.due_at = i % 7 ? 1000 - i : 0;
		s.memory_bytes = 10;
		s.disk_bytes = 100;
		if (store_session_create(st, &s, NULL, &err) < 0)
			return -1;
	}
	return 0;
}

static int count(struct store *st, struct store_session_filter f)
{
	struct store_session_list l;
	struct err err;
	int n;

	if (store_session_list(st, &f, all, &l, &err) < 0)
		return -1;
	n = (int)l.count;
	store_session_list_fini(&l);
	return n;
}

static void lists_are_filtered(void)
{
	OPEN();
	CHECK(!add_sessions(st, 60));
	CHECK(count(st, (struct store_session_filter){ 0 }) == 60);
	CHECK(count(st, (struct store_session_filter){ .tenant = "t" }) == 60);
	CHECK(count(st, (struct store_session_filter){ .tenant = "t2" }) == 0);
	CHECK(count(st, (struct store_session_filter){ .tenant = "t", .user = "u0" }) == 20);
	CHECK(count(st, (struct store_session_filter){ .user = "u1" }) == 40);
	CHECK(count(st, (struct store_session_filter){ .project = "p" }) == 15);
	CHECK(count(st, (struct store_session_filter){ .states = 1 << 1 | 1 << 4 }) == 24);
	CHECK(count(st, (struct store_session_filter){ .meta_key = "colour",
						       .meta_value = "red" }) == 30);
	CHECK(count(st, (struct store_session_filter){ .meta_key = "n", .meta_value = "1" }) == 0);
	CHECK(count(st, (struct store_session_filter){ .meta_key = "$.colour",
						       .meta_value = "red" }) == 0);
	CHECK(count(st, (struct store_session_filter){ .tenant = "" }) == -1);
	CHECK(count(st, (struct store_session_filter){ .user = "" }) == -1);
}

static void pages_list_each_record_once_while_others_change(void)
{
	struct store_session_filter any = { 0 };
	struct store_page page = { .limit = 7 };
	int64_t before = 0;
	int seen = 0;

	OPEN();
	CHECK(!add_sessions(st, 60));
	do {
		struct store_session_list l;
		struct store_session late = session("late");

		CHECK(!store_session_list(st, &any, page, &l, &err));
		for (size_t i = 0; i < l.count; i++) {
			CHECK(l.items[i].seq > before);
			before = l.items[i].seq;
		}
		seen += (int)l.count;
		/* a listed session is removed, and a new one is created */
		if (l.count > 0)
			CHECK(!store_session_remove(st, l.items[0].id, &err));
		if (page.after == 0)
			CHECK(!store_session_create(st, &late, NULL, &err));
		page.after = l.next;
		store_session_list_fini(&l);
	} while (page.after);
	CHECK(seen == 61);
	page.limit = 0;
	CHECK(store_session_list(st, &any, page, &(struct store_session_list){ 0 }, &err) == -1);
	page.limit = STORE_PAGE_MAX + 1;
	CHECK(store_session_list(st, &any, page, &(struct store_session_list){ 0 }, &err) == -1);
	CHECK(err.code == ERR_INVALID);
}

static void due_sessions_are_listed_longest_due_first(void)
{
	struct store_session_list l;

	OPEN();
	CHECK(!add_sessions(st, 60));
	CHECK(!store_session_find_due(st, 940, 100, &l, &err) && l.count == 0);
	store_session_list_fini(&l);
	CHECK(!store_session_find_due(st, 950, 100, &l, &err) && l.count == 9); /* 50..59 but 56 */
	for (size_t i = 0; i < l.count; i++)
		CHECK(l.items[i].due_at > 0 && l.items[i].due_at <= 950 &&
		      (i == 0 || l.items[i].due_at > l.items[i - 1].due_at));
	store_session_list_fini(&l);
	CHECK(!store_session_find_due(st, INT64_MAX, 3, &l, &err) && l.count == 3);
	CHECK(l.items[0].due_at == 941);
	store_session_list_fini(&l);
}

static void run_contract_session(void)
{
	RUN(a_session_is_read_back_unchanged);
	RUN(a_session_is_found_by_each_of_its_keys);
	RUN(a_key_is_unique_within_its_tenant_and_a_refused_create_leaves_nothing);
	RUN(an_invalid_record_is_refused);
	RUN(an_update_needs_the_current_version);
	RUN(an_update_does_not_change_owner_and_keys);
	RUN(a_change_and_its_event_are_atomic);
	RUN(a_key_moves_from_one_session_to_another);
	RUN(a_failed_session_leaves_only_its_event);
	RUN(a_destroyed_session_frees_its_keys_and_leaves_a_tombstone);
	RUN(destroying_twice_keeps_the_first_cause);
	RUN(tombstones_are_pruned_by_number_and_time);
	RUN(lists_are_filtered);
	RUN(pages_list_each_record_once_while_others_change);
	RUN(due_sessions_are_listed_longest_due_first);
}

#endif
