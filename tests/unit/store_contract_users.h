/* SPDX-License-Identifier: Apache-2.0 */
/* Part of store_contract.h: projects, fragments, users, teams, keys, quotas, policies,
 * environments. */
#ifndef LODGE_TESTS_STORE_CONTRACT_PEOPLE_H
#define LODGE_TESTS_STORE_CONTRACT_PEOPLE_H

static int add_project(struct store *st, const char *id, const char *owner, const char *team)
{
	struct store_project p = { .tenant = "t" };
	struct err err;

	snprintf(p.id, sizeof(p.id), "%s", id);
	snprintf(p.owner, sizeof(p.owner), "%s", owner);
	snprintf(p.team, sizeof(p.team), "%s", team);
	return store_project_add(st, &p, &err) < 0 ? -(int)err.code : 0;
}

static void projects_are_listed_for_their_owner_and_team(void)
{
	struct store_member m = { .tenant = "t", .team = "red", .user = "bob", .role = 3 };
	struct store_project_list l;
	struct store_project p;

	OPEN();
	CHECK(!add_project(st, "p1", "ann", "") && !add_project(st, "p2", "ann", "red"));
	CHECK(!add_project(st, "p3", "bob", ""));
	CHECK(add_project(st, "p1", "x", "") == -ERR_CONFLICT);
	CHECK(!store_team_put(st, &m, &err));
	CHECK(!store_project_list(st, "t", "bob", all, &l, &err) && l.count == 2);
	CHECK_STR(l.items[0].id, "p2");
	CHECK_STR(l.items[1].id, "p3");
	store_project_list_fini(&l);
	CHECK(!store_project_list(st, "t", NULL, all, &l, &err) && l.count == 3);
	store_project_list_fini(&l);
	CHECK(!store_project_list(st, "t2", "ann", all, &l, &err) && l.count == 0);
	store_project_list_fini(&l);
	CHECK(!store_project_get(st, "t", "p2", &p, &err));
	CHECK_STR(p.owner, "ann");
	CHECK(store_project_get(st, "t2", "p2", &p, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_project_remove(st, "t", "p2", &err));
	CHECK(store_project_remove(st, "t", "p2", &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void a_fragment_stores_ten_thousand_files_exactly(void)
{
	enum { N = STORE_FILES_MAX };
	static char paths[N][24];
	static uint8_t bytes[N][8];
	static struct store_file files[N + 1];
	struct store_fragment f = { .tenant = "t", .id = "f1", .project = "p1" };
	struct store_file_list l;

	OPEN();
	CHECK(!add_project(st, "p1", "ann", ""));
	for (int i = 0; i < N; i++) {
		snprintf(paths[i], sizeof(paths[i]), "d/%05d", N - 1 - i);
		for (int k = 0; k < 8; k++)
			bytes[i][k] = (uint8_t)(i >> k * 3);
		files[i] = (struct store_file){ paths[i], bytes[i], (size_t)i % 9 };
	}
	files[N] = files[0];
	CHECK(store_fragment_add(st, &f, files, N + 1, &err) == -1 && err.code == ERR_INVALID);
	CHECK(!store_fragment_add(st, &f, files, N, &err) && f.files == N && f.seq > 0);
	CHECK(!store_fragment_files(st, "t", "f1", &l, &err) && l.count == N);
	for (int i = 0; i < N; i++) {
		const struct store_file *got = &l.items[N - 1 - i];

		CHECK_STR(got->path, paths[i]);
		CHECK(got->size == (size_t)i % 9);
		CHECK(got->size == 0 || memcmp(got->data, bytes[i], got->size) == 0);
	}
	store_file_list_fini(&l);
}

static void adding_a_fragment_is_atomic(void)
{
	static char a[] = "a", b[] = "b", data[] = "x";
	struct store_file files[] = { { a, data, 1 }, { b, data, 1 }, { a, data, 1 } };
	struct store_fragment f = { .tenant = "t", .id = "f1", .project = "p1" }, got;

	OPEN();
	CHECK(store_fragment_add(st, &f, files, 2, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!add_project(st, "p1", "ann", ""));
	CHECK(store_fragment_add(st, &f, files, 3, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_fragment_get(st, "t", "f1", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(f.seq == 0);
	CHECK(!store_fragment_add(st, &f, files, 2, &err) && f.bytes == 2);
	CHECK(store_fragment_add(st, &f, files, 2, &err) == -1 && err.code == ERR_CONFLICT);
	strcpy(f.id, "f2");
	strcpy(f.snapshot, "nosuch");
	CHECK(store_fragment_add(st, &f, NULL, 0, &err) == -1 && err.code == ERR_CONFLICT);
}

static void fragments_are_listed_newest_first_and_removed_with_their_project(void)
{
	static char path[] = "a", data[] = "x";
	struct store_file file = { path, data, 1 };
	struct store_fragment f = { .tenant = "t", .project = "p1" }, got;
	struct store_fragment_list l;
	struct store_file_list files;
	struct store_snapshot n = { .id = "n1", .tenant = "t", .layer = "l1" };

	OPEN();
	CHECK(!add_project(st, "p1", "ann", "") && !add_project(st, "p2", "ann", ""));
	CHECK(!add_layer(st, "l1", "", 1) && !store_snapshot_add(st, &n, &err));
	for (int i = 0; i < 5; i++) {
		snprintf(f.id, sizeof(f.id), "f%d", i);
		strcpy(f.project, i == 2 ? "p2" : "p1");
		strcpy(f.snapshot, i == 4 ? "n1" : "");
		CHECK(!store_fragment_add(st, &f, &file, 1, &err));
	}
	CHECK(store_snapshot_remove(st, "n1", &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!store_fragment_list(st, "t", "p1", (struct store_page){ .limit = 4 }, &l, &err));
	CHECK(l.count == 4 && !l.next); /* a full last page */
	store_fragment_list_fini(&l);
	CHECK(!store_fragment_list(st, "t", "p1", (struct store_page){ .limit = 3 }, &l, &err));
	CHECK(l.count == 3 && l.next);
	CHECK_STR(l.items[0].id, "f4");
	CHECK_STR(l.items[2].id, "f1");
	f.seq = l.next;
	store_fragment_list_fini(&l);
	CHECK(!store_fragment_list(st, "t", "p1", (struct store_page){ f.seq, 3 }, &l, &err));
	CHECK(l.count == 1 && !l.next);
	CHECK_STR(l.items[0].id, "f0");
	store_fragment_list_fini(&l);
	CHECK(!store_fragment_remove(st, "t", "f0", &err));
	CHECK(store_fragment_remove(st, "t", "f0", &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_project_remove(st, "t", "p1", &err));
	CHECK(store_fragment_get(st, "t", "f4", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_fragment_files(st, "t", "f4", &files, &err) == -1);
	CHECK(!store_fragment_files(st, "t", "f2", &files, &err) && files.count == 1);
	store_file_list_fini(&files);
	CHECK(!store_snapshot_remove(st, "n1", &err));
}

/* ---- users --------------------------------------------------------------------------------- */

static void a_user_is_created_once_and_then_changed(void)
{
	struct store_user u = { .tenant = "t", .id = "u1", .name = "Ann", .created_at = 5 }, got;
	struct store_user_list l;

	OPEN();
	CHECK(!store_user_put(st, &u, &err));
	strcpy(u.email, "ann@example.org");
	strcpy(u.project, "p1");
	u.created_at = 99;
	CHECK(!store_user_put(st, &u, &err));
	CHECK(!store_user_get(st, "t", "u1", &got, &err) && got.created_at == 5);
	CHECK_STR(got.name, "Ann");
	CHECK_STR(got.email, "ann@example.org");
	CHECK(store_user_get(st, "t2", "u1", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	strcpy(u.id, "u2");
	CHECK(!store_user_put(st, &u, &err));
	CHECK(!store_user_list(st, "t", all, &l, &err) && l.count == 2 &&
	      l.items[1].seq > l.items[0].seq);
	store_user_list_fini(&l);
	u.id[0] = '\0';
	CHECK(store_user_put(st, &u, &err) == -1 && err.code == ERR_INVALID);
}

static void a_member_has_one_role(void)
{
	struct store_member m = { .tenant = "t", .team = "red", .user = "bob", .role = 3 }, got;
	struct store_member_list l;

	OPEN();
	CHECK(!store_team_put(st, &m, &err));
	m.role = 1;
	CHECK(!store_team_put(st, &m, &err));
	strcpy(m.user, "ann");
	CHECK(!store_team_put(st, &m, &err));
	CHECK(!store_team_get(st, "t", "red", "bob", &got, &err) && got.role == 1);
	CHECK(store_team_get(st, "t", "blue", "bob", &got, &err) == -1 &&
	      err.code == ERR_NOT_FOUND);
	CHECK(!store_team_list(st, "t", "red", &l, &err) && l.count == 2);
	CHECK_STR(l.items[0].user, "ann");
	store_member_list_fini(&l);
	CHECK(!store_team_remove(st, "t", "red", "bob", &err));
	CHECK(store_team_remove(st, "t", "red", "bob", &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void teams_are_listed_by_name_with_what_they_have(void)
{
	struct store_member m = { .tenant = "t", .team = "red", .user = "bob", .role = 3 };
	struct store_project p = { .tenant = "t", .id = "p1", .name = "P", .owner = "ann" };
	struct store_team_row_list l;
	struct store_page two = { .limit = 2 };

	OPEN();
	CHECK(!store_team_put(st, &m, &err));
	strcpy(m.user, "ann");
	CHECK(!store_team_put(st, &m, &err));
	strcpy(m.team, "green");
	m.role = 1;
	CHECK(!store_team_put(st, &m, &err));
	strcpy(m.tenant, "other");
	CHECK(!store_team_put(st, &m, &err));
	strcpy(p.team, "blue"); /* has no members yet */
	CHECK(!store_project_add(st, &p, &err));
	CHECK(!store_team_rows(st, "t", NULL, two, &l, &err) && l.count == 2 && l.next == 2);
	CHECK_STR(l.items[0].team, "blue");
	CHECK(l.items[0].members == 0 && l.items[0].projects == 1 && l.items[0].role == 0);
	CHECK_STR(l.items[1].team, "green");
	two.after = l.next;
	store_team_row_list_fini(&l);
	CHECK(!store_team_rows(st, "t", NULL, two, &l, &err) && l.count == 1 && l.next == 0);
	CHECK(!strcmp(l.items[0].team, "red") && l.items[0].members == 2);
	store_team_row_list_fini(&l);
	two.after = 0;
	CHECK(!store_team_rows(st, "t", "bob", two, &l, &err) && l.count == 1);
	CHECK(!strcmp(l.items[0].team, "red") && l.items[0].role == 3 && l.items[0].members == 2);
	store_team_row_list_fini(&l);
	CHECK(!store_team_rows(st, "none", NULL, two, &l, &err) && l.count == 0);
	store_team_row_list_fini(&l);
}

static void a_key_is_found_by_its_hash_only(void)
{
	struct store_key k = {
		.id = "k1", .tenant = "t", .scopes = "admin", .hash = { 1, 0, 255 }
	};
	struct store_key got;
	struct store_key_list l;

	OPEN();
	CHECK(!store_key_add(st, &k, &err));
	CHECK(store_key_add(st, &k, &err) == -1 && err.code == ERR_CONFLICT);
	strcpy(k.id, "k2");
	CHECK(store_key_add(st, &k, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(!store_key_find(st, k.hash, &got, &err) && memcmp(got.hash, k.hash, STORE_HASH) == 0);
	CHECK_STR(got.id, "k1");
	k.hash[STORE_HASH - 1] = 1;
	CHECK(store_key_find(st, k.hash, &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	strcpy(k.tenant, "t2");
	CHECK(!store_key_add(st, &k, &err));
	CHECK(!store_key_list(st, "t", all, &l, &err) && l.count == 1);
	store_key_list_fini(&l);
	CHECK(!store_key_list(st, NULL, all, &l, &err) && l.count == 2);
	store_key_list_fini(&l);
	CHECK(!store_key_remove(st, "k1", &err));
	CHECK(store_key_remove(st, "k1", &err) == -1 && err.code == ERR_NOT_FOUND);
}

static void usage_is_the_sum_of_the_sessions(void)
{
	struct store_quota q = { .tenant = "t", .user = "u0", .sandboxes = 4, .cpu_ms = 9 }, got;
	struct store_usage u;

	OPEN();
	CHECK(!add_sessions(st, 60));
	CHECK(store_quota_get(st, "t", "u0", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_quota_set(st, &q, &err));
	q.sandboxes = 5;
	CHECK(!store_quota_set(st, &q, &err));
	q.user[0] = '\0'; /* the tenant itself */
	q.sandboxes = 50;
	CHECK(!store_quota_set(st, &q, &err));
	CHECK(!store_quota_get(st, "t", "u0", &got, &err) && got.sandboxes == 5 && got.cpu_ms == 9);
	CHECK(!store_quota_get(st, "t", "", &got, &err) && got.sandboxes == 50 && !got.user[0]);
	CHECK(!store_quota_charge(st, "t", "u0", 70, 1, &err) &&
	      !store_quota_charge(st, "t", "u0", 5, 1, &err));
	CHECK(!store_quota_charge(st, "t", "", 1, 1, &err));
	CHECK(!store_quota_usage(st, "t", "u0", 1 << 2, &u, &err));
	CHECK(u.sessions == 20 && u.disk_bytes == 2000 && u.cpu_ms == 75);
	CHECK(u.active == 4 && u.memory_bytes == 40);
	CHECK(!store_quota_usage(st, NULL, NULL, 1 << 2, &u, &err));
	CHECK(u.sessions == 60 && u.active == 12 && u.cpu_ms == 76);
	CHECK(!store_quota_usage(st, "t", "nosuch", 1, &u, &err) && u.sessions == 0 &&
	      u.active == 0);
	CHECK(store_quota_usage(st, "t", "", 1, &u, &err) == -1 && err.code == ERR_INVALID);
}

/* ---- policies ------------------------------------------------------------------------------ */

static void a_policy_belongs_to_a_tenant_and_can_be_changed(void)
{
	static char limits[] = "{\"pids\":9}", commands[] = "{\"allow\":[\"ls\"]}";
	struct store_policy p = { .tenant = "t",
				  .name = "one",
				  .max_active_per_user = 1,
				  .on_exceed = 1,
				  .idle_timeout_ms = 5,
				  .network = "none",
				  .limits = limits,
				  .created_at = 7,
				  .commands = commands };
	struct store_policy got = { 0 };
	struct store_policy_list l;

	OPEN();
	CHECK(store_policy_get(st, "t", "one", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_policy_update(st, &p, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_policy_add(st, &p, &err) && p.seq > 0);
	CHECK(store_policy_add(st, &p, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_policy_get(st, "t2", "one", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_policy_get(st, "t", "one", &got, &err));
	CHECK(got.max_active_per_user == 1 && got.on_exceed == 1 && got.idle_timeout_ms == 5);
	CHECK(got.created_at == 7 && !got.max_lifetime_ms);
	CHECK_STR(got.limits, limits);
	CHECK_STR(got.commands, commands);
	CHECK_STR(got.network, "none");
	store_policy_fini(&got);
	p.limits = p.commands = NULL;
	p.max_active_per_user = 3;
	p.created_at = 99;
	CHECK(!store_policy_update(st, &p, &err) && !store_policy_get(st, "t", "one", &got, &err));
	CHECK(got.max_active_per_user == 3 && !got.limits && !got.commands && got.created_at == 7);
	strcpy(p.tenant, "t2");
	CHECK(!store_policy_add(st, &p, &err));
	CHECK(!store_policy_list(st, "t", all, &l, &err) && l.count == 1 && !l.next);
	store_policy_list_fini(&l);
	CHECK(!store_policy_list(st, NULL, (struct store_page){ .limit = 1 }, &l, &err));
	CHECK(l.count == 1 && l.next == l.items[0].seq);
	store_policy_list_fini(&l);
	CHECK(store_policy_list(st, "", all, &l, &err) == -1 && err.code == ERR_INVALID);
	p.name[0] = '\0';
	CHECK(store_policy_add(st, &p, &err) == -1 && err.code == ERR_INVALID);
}

static void a_policy_cannot_be_removed_while_a_session_uses_it(void)
{
	struct store_policy p = { .tenant = "t", .name = "one" };
	struct store_session s = session("s1"), got;
	struct store_session_filter f = { .tenant = "t", .policy = "one" };
	int64_t n = -1;

	OPEN();
	strcpy(s.policy, "one");
	strcpy(s.template, "host");
	CHECK(store_session_create(st, &s, NULL, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_session_get(st, "s1", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_policy_add(st, &p, &err) && !store_session_create(st, &s, NULL, &err));
	CHECK(!store_session_get(st, "s1", &got, &err));
	CHECK_STR(got.policy, "one");
	store_session_fini(&got);
	CHECK(!store_session_count(st, &f, &n, &err) && n == 1);
	f = (struct store_session_filter){ .template = "host" };
	CHECK(!store_session_count(st, &f, &n, &err) && n == 1);
	f = (struct store_session_filter){ .template = "other" };
	CHECK(!store_session_count(st, &f, &n, &err) && n == 0);
	f.template = "";
	CHECK(store_session_count(st, &f, &n, &err) == -1 && err.code == ERR_INVALID);
	CHECK(store_policy_remove(st, "t", "one", &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(store_policy_remove(st, "t2", "one", &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_session_remove(st, "s1", &err) && !store_policy_remove(st, "t", "one", &err));
	CHECK(store_policy_remove(st, "t", "one", &err) == -1 && err.code == ERR_NOT_FOUND);
}

/* ---- environments -------------------------------------------------------------------------- */

static void a_template_has_only_its_latest_environment(void)
{
	char first[] = "{\"a\":1}", second[] = "{\"a\":2}", none[] = "nonsense";
	struct store_environment v = { .template = "host", .version = "1", .captured_at = 5 }, got;

	OPEN();
	CHECK(store_environment_get(st, "host", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(store_environment_put(st, &v, &err) == -1 && err.code == ERR_INVALID);
	v.data = none;
	CHECK(store_environment_put(st, &v, &err) == -1 && err.code == ERR_INVALID);
	v.data = first;
	CHECK(!store_environment_put(st, &v, &err));
	v = (struct store_environment){ .template = "other", .version = "1", .data = first };
	CHECK(!store_environment_put(st, &v, &err));
	v = (struct store_environment){
		.template = "host", .version = "2", .captured_at = 6, .data = second
	};
	CHECK(!store_environment_put(st, &v, &err));
	CHECK(!store_environment_get(st, "host", &got, &err) && got.captured_at == 6);
	CHECK_STR(got.version, "2");
	CHECK_STR(got.data, second);
	store_environment_fini(&got);
	CHECK(!store_environment_remove(st, "host", &err) &&
	      !store_environment_remove(st, "host", &err));
	CHECK(store_environment_get(st, "host", &got, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(!store_environment_get(st, "other", &got, &err) && got.captured_at == 0);
	store_environment_fini(&got);
}

static void run_contract_users(void)
{
	RUN(projects_are_listed_for_their_owner_and_team);
	RUN(a_fragment_stores_ten_thousand_files_exactly);
	RUN(adding_a_fragment_is_atomic);
	RUN(fragments_are_listed_newest_first_and_removed_with_their_project);
	RUN(a_user_is_created_once_and_then_changed);
	RUN(a_member_has_one_role);
	RUN(teams_are_listed_by_name_with_what_they_have);
	RUN(a_key_is_found_by_its_hash_only);
	RUN(usage_is_the_sum_of_the_sessions);
	RUN(a_policy_belongs_to_a_tenant_and_can_be_changed);
	RUN(a_policy_cannot_be_removed_while_a_session_uses_it);
	RUN(a_template_has_only_its_latest_environment);
}

#endif
