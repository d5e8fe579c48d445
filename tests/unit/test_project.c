/* SPDX-License-Identifier: Apache-2.0 */
/* Records of projects, teams and fragments: permissions, and the limits of a fragment. */
#include "session_engine.h"

#include "base/array.h"
#include "engine/internal.h"
#include "project/fragment_json.h"
#include "project/project.h"
#include "project/team.h"
#include "project/users.h"
#include "project/project_switch.h"
#include "count_writes.h"

static struct store_page page = { .limit = 100 };

static bool make_project(const char *user, const char *id, const char *team)
{
	struct project_opts want = { .id = id, .name = "A name", .team = team };
	struct store_project p;

	if (project_add(engine, &me, user, &want, &p, &err) == 0)
		return strcmp(p.owner, user) == 0 && strcmp(p.id, id) == 0;
	printf("# %s\n", err.msg);
	return false;
}

static int save(const char *user, const char *project, const char *id, const char *files)
{
	struct fragment_opts want = { .id = id,
				      .files = files,
				      .files_len = files ? strlen(files) : 0 };
	struct fragment_add_result f;

	return fragment_add(engine, &me, user, project, &want, &f, &err);
}

static bool fails(int r, enum err_code code, const char *text)
{
	if (r < 0 && err.code == code && strcmp(err.msg, text) == 0)
		return true;
	printf("# %d, code %d: %s\n", r, err.code, r < 0 ? err.msg : "");
	return false;
}

/* ---- projects ------------------------------------------------------------------------------ */

static void a_project_belongs_to_its_owner(void)
{
	struct project_opts unnamed = { .name = "Another" };
	struct store_project p, q;
	struct store_project_list l;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL));
	CHECK(project_get(engine, &me, "ann", "p1", &p, &err) == 0);
	CHECK_STR(p.name, "A name");
	CHECK(project_add(engine, &me, "ann", &unnamed, &q, &err) == 0);
	CHECK(strncmp(q.id, "prj_", 4) == 0);
	CHECK(fails(project_add(engine, &me, "bob", &(struct project_opts){ "p1", "x", NULL }, &q,
				&err),
		    ERR_CONFLICT, "project p1 already exists"));
	CHECK(project_list(engine, &me, "ann", page, &l, &err) == 0 && l.count == 2);
	store_project_list_fini(&l);
	CHECK_STR(p.owner, "ann");
	CHECK(fails(project_get(engine, &me, "ann", "none", &q, &err), ERR_NOT_FOUND,
		    "Project not found"));
	CHECK(project_remove(engine, &me, "ann", "p1", &err) == 0);
	CHECK(fails(project_get(engine, &me, "ann", "p1", &p, &err), ERR_NOT_FOUND,
		    "Project not found"));
}

static void invalid_names_are_refused(void)
{
	char text[300];
	struct store_project p;

	EMPTY_ENGINE();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(fails(project_add(engine, &me, "ann", &(struct project_opts){ "p", NULL, NULL }, &p,
				&err),
		    ERR_INVALID, "name: missing"));
	CHECK(fails(
		project_add(engine, &me, "", &(struct project_opts){ "p", "n", NULL }, &p, &err),
		ERR_INVALID, "user: missing"));
	CHECK(fails(project_add(engine, &me, "ann", &(struct project_opts){ text, "n", NULL }, &p,
				&err),
		    ERR_INVALID, "id: longer than 63 bytes"));
	CHECK(fails(project_add(engine, &me, "a\nn", &(struct project_opts){ "p", "n", NULL }, &p,
				&err),
		    ERR_INVALID, "user: contains a control character"));
	CHECK(fails(project_add(engine, &me, "a\xff", &(struct project_opts){ "p", "n", NULL }, &p,
				&err),
		    ERR_INVALID, "user: not valid UTF-8"));
	CHECK(fails(project_get(engine, &me, "ann", text, &p, &err), ERR_NOT_FOUND,
		    "Project not found"));
	CHECK(fails(project_add(engine, &me, "ann", &(struct project_opts){ "a/b", "n", NULL }, &p,
				&err),
		    ERR_INVALID, "id: must not contain a slash nor be \".\" or \"..\""));
	CHECK(fails(
		project_add(engine, &me, "ann", &(struct project_opts){ "p", "n", ".." }, &p, &err),
		ERR_INVALID, "team: must not contain a slash nor be \".\" or \"..\""));
}

static void reads_create_no_user(void)
{
	struct store_project_list l;
	struct user_info info;
	int64_t before;

	EMPTY_ENGINE();
	before = count_writes(engine);
	CHECK(project_list(engine, &me, "nosuch", page, &l, &err) == 0 && l.count == 0);
	store_project_list_fini(&l);
	CHECK(user_get(engine, &me, "nosuch", &info, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(count_writes(engine) == before);
	CHECK(make_project("nosuch", "p1", NULL));
	CHECK(user_get(engine, &me, "nosuch", &info, &err) == 0);
	CHECK(info.active == 0 && !info.has_session && info.user.created_at > 0);
	user_info_fini(&info);
}

static void the_name_of_a_user_is_stored(void)
{
	struct user_info info;

	EMPTY_ENGINE();
	CHECK(user_set(engine, &me, "ann", "Ann", NULL, &err) == 0);
	CHECK(user_set(engine, &me, "ann", NULL, "ann@example.org", &err) == 0);
	CHECK(make_project("ann", "p1", NULL));
	CHECK(user_get(engine, &me, "ann", &info, &err) == 0);
	CHECK_STR(info.user.name, "Ann");
	CHECK_STR(info.user.email, "ann@example.org");
	user_info_fini(&info);
	CHECK(user_set(engine, &me, "bob", "Bob", NULL, &err) == 0);
	CHECK(user_get(engine, &me, "bob", &info, &err) == 0);
	CHECK_STR(info.user.id, "bob");
	user_info_fini(&info);
}

/* ---- access -------------------------------------------------------------------------------- */

static const struct {
	const char *user;
	bool view, save, remove;
} matrix[] = {
	{ "owner", true, true, true },	    { "t-owner", true, true, true },
	{ "t-admin", true, true, true },    { "t-member", true, true, false },
	{ "t-viewer", true, false, false }, { "outsider", false, false, false },
};

static bool may(int r, bool allowed, bool sees)
{
	if (allowed)
		return r == 0;
	return sees ? fails(r, ERR_DENIED, "Access denied to this project")
		    : fails(r, ERR_NOT_FOUND, "Project not found");
}

static void permissions_of_every_role(void)
{
	EMPTY_ENGINE();
	CHECK(make_project("owner", "p1", "team"));
	for (enum team_role r = TEAM_OWNER; r <= TEAM_VIEWER; r++)
		CHECK(team_put(engine, &me, NULL, "team", matrix[r].user, r, &err) == 0);
	for (size_t i = 0; i < ARRAY_LEN(matrix); i++) {
		const char *user = matrix[i].user;
		bool sees = matrix[i].view;
		struct store_project p;
		struct store_project_list l;
		struct store_fragment_list fl = { 0 };
		struct store_fragment f;

		CHECK(may(project_get(engine, &me, user, "p1", &p, &err), sees, sees));
		CHECK(project_list(engine, &me, user, page, &l, &err) == 0 && l.count == sees);
		store_project_list_fini(&l);
		CHECK(save("owner", "p1", "f", "{}") == 0);
		CHECK(may(save(user, "p1", user, "{}"), matrix[i].save, sees));
		CHECK(may(fragment_get(engine, &me, user, "p1", "f", &f, NULL, &err), sees, sees));
		CHECK(may(fragment_list(engine, &me, user, "p1", page, &fl, &err), sees, sees));
		store_fragment_list_fini(&fl);
		CHECK(may(fragment_remove(engine, &me, user, "p1", "f", &err), matrix[i].remove,
			  sees));
		if (!matrix[i].remove)
			CHECK(fragment_remove(engine, &me, "owner", "p1", "f", &err) == 0);
		CHECK(may(project_remove(engine, &me, user, "p1", &err), matrix[i].remove, sees));
		if (matrix[i].remove)
			CHECK(make_project("owner", "p1", "team"));
	}
}

static void another_tenant_sees_nothing(void)
{
	static const struct caller them = { "other", "test" };
	struct store_project p;
	struct store_fragment f;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL));
	CHECK(save("ann", "p1", "f", "{}") == 0);
	CHECK(fails(project_get(engine, &them, "ann", "p1", &p, &err), ERR_NOT_FOUND,
		    "Project not found"));
	CHECK(fails(fragment_get(engine, &them, "ann", "p1", "f", &f, NULL, &err), ERR_NOT_FOUND,
		    "Project not found"));
}

/* ---- teams --------------------------------------------------------------------------------- */

static int put(const char *by, const char *user, enum team_role role)
{
	return team_put(engine, &me, by, "team", user, role, &err);
}

static void roles_have_names(void)
{
	CHECK_STR(team_role_name(TEAM_OWNER), "OWNER");
	CHECK_STR(team_role_name(TEAM_VIEWER), "VIEWER");
	CHECK_STR(team_role_name(9), "?");
	CHECK(team_role_find("ADMIN") == TEAM_ADMIN && team_role_find("MEMBER") == TEAM_MEMBER);
	CHECK(team_role_find("admin") == 0 && team_role_find("") == 0);
}

static void only_owners_and_admins_change_a_team(void)
{
	struct store_member_list l;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", "team")); /* the first user of a team owns it */
	CHECK(put("ann", "adam", TEAM_ADMIN) == 0 && put("ann", "vic", TEAM_VIEWER) == 0);
	CHECK(put("adam", "mia", TEAM_MEMBER) == 0);
	CHECK(fails(put("adam", "adam", TEAM_OWNER), ERR_DENIED, "Access denied to this team"));
	CHECK(fails(put("adam", "ann", TEAM_VIEWER), ERR_DENIED, "Access denied to this team"));
	CHECK(fails(put("mia", "eve", TEAM_VIEWER), ERR_DENIED, "Access denied to this team"));
	CHECK(fails(put("vic", "vic", TEAM_ADMIN), ERR_DENIED, "Access denied to this team"));
	CHECK(fails(put("eve", "eve", TEAM_OWNER), ERR_NOT_FOUND, "Team not found"));
	CHECK(fails(put("ann", "eve", 0), ERR_INVALID,
		    "role: must be OWNER, ADMIN, MEMBER or VIEWER"));
	CHECK(fails(team_remove(engine, &me, "adam", "team", "ann", NULL, &err), ERR_DENIED,
		    "Access denied to this team"));
	CHECK(team_remove(engine, &me, "vic", "team", "vic", NULL, &err) == 0);
	CHECK(team_remove(engine, &me, "adam", "team", "mia", NULL, &err) == 0);
	CHECK(team_remove(engine, &me, NULL, "team", "mia", NULL, &err) < 0 &&
	      err.code == ERR_NOT_FOUND);
	CHECK(team_list(engine, &me, "adam", "team", &l, &err) == 0 && l.count == 2);
	CHECK_STR(l.items[0].user, "adam");
	store_member_list_fini(&l);
	CHECK(team_list(engine, &me, "eve", "team", &l, &err) == 0 && l.count == 0);
	store_member_list_fini(&l);
}

static void naming_a_team_gives_no_access(void)
{
	struct store_project p;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", "team"));
	CHECK(!make_project("eve", "p2", "team") && err.code == ERR_NOT_FOUND);
	CHECK(fails(put("eve", "eve", TEAM_MEMBER), ERR_NOT_FOUND, "Team not found"));
	/* nor when all members have left */
	CHECK(team_remove(engine, &me, "ann", "team", "ann", NULL, &err) == 0);
	CHECK(make_project("eve", "p3", "team"));
	CHECK(fails(project_get(engine, &me, "eve", "p1", &p, &err), ERR_NOT_FOUND,
		    "Project not found"));
}

/* ---- fragments ----------------------------------------------------------------------------- */

static void fragments_are_listed_newest_first(void)
{
	struct store_fragment_list l;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL) && make_project("ann", "p2", NULL));
	CHECK(save("ann", "p1", "f1", "{\"a\":\"1\"}") == 0);
	CHECK(save("ann", "p1", "f2", "{\"a\":\"1\",\"b\":\"22\"}") == 0);
	CHECK(save("ann", "p2", "f3", "{}") == 0);
	CHECK(fragment_list(engine, &me, "ann", "p1", page, &l, &err) == 0 && l.count == 2);
	CHECK_STR(l.items[0].id, "f2");
	CHECK(l.items[0].files == 2 && l.items[0].bytes == 3);
	store_fragment_list_fini(&l);
	CHECK(fragment_list(engine, &me, "ann", "p1", (struct store_page){ .limit = 1 }, &l,
			    &err) == 0);
	CHECK(l.count == 1 && l.next != 0);
	store_fragment_list_fini(&l);
}

static void a_fragment_belongs_to_one_project(void)
{
	struct store_fragment f;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL) && make_project("ann", "p2", NULL));
	CHECK(save("ann", "p1", "f1", "{}") == 0);
	CHECK(fails(fragment_get(engine, &me, "ann", "p2", "f1", &f, NULL, &err), ERR_CONFLICT,
		    "Fragment f1 does not belong to project p2"));
	CHECK(fails(fragment_get(engine, &me, "ann", "p1", "f9", &f, NULL, &err), ERR_NOT_FOUND,
		    "Fragment not found: f9"));
	CHECK(save("ann", "p1", "f1", "{}") < 0 && err.code == ERR_CONFLICT);
	CHECK(fragment_remove(engine, &me, "ann", "p1", "f1", &err) == 0);
	CHECK(fails(fragment_remove(engine, &me, "ann", "p1", "f1", &err), ERR_NOT_FOUND,
		    "Fragment not found: f1"));
}

static bool has(const struct store_file_list *l, const char *path, const void *data, size_t size)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].path, path) == 0)
			return l->items[i].size == size &&
			       (size == 0 || memcmp(l->items[i].data, data, size) == 0);
	printf("# there is no %s\n", path);
	return false;
}

static void the_three_encodings_of_content(void)
{
	static const char files[] =
		"{\"text\":\"gr\\u00fcn\\n\",\"empty\":\"\",\"nul\":\"a\\u0000b\","
		"\"b64\":\"__BASE64__AAH/gA==\",\"no-b64\":\"__BASE64__\","
		"\"url\":\"data:image/png;base64,iVBORw==\",\"bare\":\"data:;base64,/w==\","
		"\"yaml\":\"data:\\n  key: x;base64,AA==\",\"plain-url\":\"data:text/plain,hello\","
		"\"short\":\"data:,\",\"x//y\":\"z\"}";
	struct store_fragment f;
	struct store_file_list l;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL) && save("ann", "p1", "f", files) == 0);
	CHECK(fragment_get(engine, &me, "ann", "p1", "f", &f, &l, &err) == 0 && l.count == 11);
	CHECK(has(&l, "text", "gr\xc3\xbcn\n", 6) && has(&l, "empty", "", 0));
	CHECK(has(&l, "nul", "a\0b", 3) && has(&l, "b64", "\x00\x01\xff\x80", 4));
	CHECK(has(&l, "no-b64", "", 0) && has(&l, "url", "\x89PNG", 4) &&
	      has(&l, "bare", "\xff", 1));
	CHECK(has(&l, "yaml", "data:\n  key: x;base64,AA==", 26));
	CHECK(has(&l, "plain-url", "data:text/plain,hello", 21) && has(&l, "short", "data:,", 6));
	CHECK(has(&l, "x/y", "z", 1));
	store_file_list_fini(&l);
}

static void printed_content_is_parsed_back(void)
{
	static const char files[] = "{\"a\":\"plain\",\"b\":\"__BASE64__AAH/gA==\","
				    "\"c\":\"__BASE64__X19CQVNFNjRfX0FB\",\"d\":\"a\\u0000b\","
				    "\"e\":\"__BASE64__ZGF0YTo7YmFzZTY0LEFB\",\"f\":\"\"}";
	struct store_file_list l, again;
	struct store_fragment f;
	struct json_out j;
	char *text;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL) && save("ann", "p1", "f1", files) == 0);
	CHECK(fragment_get(engine, &me, "ann", "p1", "f1", &f, &l, &err) == 0);
	CHECK(has(&l, "c", "__BASE64__AA", 12) && has(&l, "e", "data:;base64,AA", 15));
	json_out_init(&j, 1 << 20);
	fragment_files_to_json(&j, NULL, &l);
	text = json_out_take(&j, NULL);
	CHECK(text && save("ann", "p1", "f2", text) == 0);
	CHECK(strstr(text, "\"plain\"") && strstr(text, "__BASE64__AAH/gA=="));
	free(text);
	CHECK(fragment_get(engine, &me, "ann", "p1", "f2", &f, &again, &err) == 0);
	CHECK(again.count == l.count);
	for (size_t i = 0; i < l.count; i++)
		CHECK(has(&again, l.items[i].path, l.items[i].data, l.items[i].size));
	store_file_list_fini(&l);
	store_file_list_fini(&again);
}

static void a_bad_path_is_named(void)
{
	static const char *const bad[][2] = {
		{ "{\"ok\":\"\",\"/etc/passwd\":\"\"}", "/etc/passwd: " },
		{ "{\"\":\"\"}", "path is empty" },
		{ "{\"..\":\"\"}", "..: " },
		{ "{\"a/../b\":\"\"}", "a/../b: " },
		{ "{\"../b\":\"\"}", "../b: " },
		{ "{\".\":\"\"}", ".: " },
		{ "{\"./a\":\"\"}", "./a: " },
		{ "{\"a/./b\":\"\"}", "a/./b: " },
		{ "{\"a/\":\"\"}", "a/: " },
		{ "{\"a\\u0000b\":\"\"}", "a\\u0000b" },
		{ "{\"a\":\"1\",\"a\":\"2\"}", "\"a\"" },
		{ "{\"a//b\":\"\",\"a/b\":\"\"}", "a/b: duplicate path" },
		{ "{\"a\":\"\",\"a-b\":\"\",\"a/b\":\"\"}",
		  "a: path is both a file and a directory" },
		{ "{\"a/b/c\":\"\",\"a/b\":\"\"}", "a/b: path is both a file and a directory" },
		{ "{\"x\":\"__BASE64__A\"}", "x: not valid base64" },
		{ "{\"x\":\"data:a/b;base64,A A=\"}", "x: not valid base64" },
		{ "{\"x\":3}", "x: content must be a string" },
		{ "{\"x\":{\"y\":\"\"}}", "x: content must be a string" },
		{ "[]", "files: must be an object" },
		{ "{", "files: " },
	};

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int r = save("ann", "p1", NULL, bad[i][0]);

		if (r == 0 || err.code != ERR_INVALID || !strstr(err.msg, bad[i][1]))
			printf("# %s: %s\n", bad[i][0], r == 0 ? "taken" : err.msg);
		CHECK(r < 0 && err.code == ERR_INVALID && strstr(err.msg, bad[i][1]));
	}
	CHECK(save("ann", "p1", NULL, "{\"a\":\"\",\"a-b\":\"\",\"a.b/c\":\"\",\"...\":\"\"}") ==
	      0);
}

static void too_long_a_path_is_refused(void)
{
	char json[FRAGMENT_PATH_MAX + 64], path[FRAGMENT_PATH_MAX + 1];

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL));
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 200 == 199 ? '/' : 'x';
	path[FRAGMENT_PATH_MAX] = '\0';
	snprintf(json, sizeof(json), "{\"%s\":\"\"}", path);
	CHECK(save("ann", "p1", NULL, json) < 0 && err.code == ERR_INVALID);
	path[FRAGMENT_PATH_MAX - 1] = '\0';
	snprintf(json, sizeof(json), "{\"%s\":\"\"}", path);
	CHECK(save("ann", "p1", NULL, json) == 0);
	memset(path, 'y', 256);
	path[256] = '\0';
	snprintf(json, sizeof(json), "{\"%s\":\"\"}", path);
	CHECK(save("ann", "p1", NULL, json) < 0 && strstr(err.msg, "file name is too long"));
}

static void sizes_are_limited(void)
{
	struct fragment_opts want = { .files = "{}", .files_len = FRAGMENT_BYTES_MAX + 1ul };
	struct fragment_add_result f;
	char *json, *p;

	EMPTY_ENGINE();
	CHECK(make_project("ann", "p1", NULL));
	CHECK(fragment_add(engine, &me, "ann", "p1", &want, &f, &err) < 0 && err.code == ERR_LIMIT);
	CHECK(err.sys == EFBIG);
	json = p = malloc((STORE_FILES_MAX + 1) * 16);
	CHECK(json);
	for (int i = 0; i <= STORE_FILES_MAX; i++)
		p += sprintf(p, "%c\"%d\":\"\"", i ? ',' : '{', i);
	memcpy(p, "}", 2);
	CHECK(save("ann", "p1", NULL, json) < 0 && err.code == ERR_LIMIT && err.sys == EFBIG);
	free(json);
	want = (struct fragment_opts){ 0 };
	CHECK(fragment_add(engine, &me, "ann", "p1", &want, &f, &err) < 0 &&
	      err.code == ERR_INVALID);
	want.from_sandbox = true;
	CHECK(fails(fragment_add(engine, &me, "ann", "p1", &want, &f, &err), ERR_CONFLICT,
		    "project p1 has no sandbox to save from"));
}

int main(void)
{
	make_home();
	RUN(a_project_belongs_to_its_owner);
	RUN(invalid_names_are_refused);
	RUN(reads_create_no_user);
	RUN(the_name_of_a_user_is_stored);
	RUN(permissions_of_every_role);
	RUN(another_tenant_sees_nothing);
	RUN(roles_have_names);
	RUN(only_owners_and_admins_change_a_team);
	RUN(naming_a_team_gives_no_access);
	RUN(fragments_are_listed_newest_first);
	RUN(a_fragment_belongs_to_one_project);
	RUN(the_three_encodings_of_content);
	RUN(printed_content_is_parsed_back);
	RUN(a_bad_path_is_named);
	RUN(too_long_a_path_is_refused);
	RUN(sizes_are_limited);
	remove_home();
	return tap_done();
}
