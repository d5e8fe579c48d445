/* SPDX-License-Identifier: Apache-2.0 */
/* Projects, fragments, teams and users, used in one process. The first argument is the home. */
#include <stdio.h>
#include <string.h>

#include "use_lib.h"

static char first[64], second[64]; /* fragments of the project "site" */
static char sandbox[64]; /* of ada */

static void a_project_has_an_owner_and_a_team(void)
{
	struct lodge_project *p = NULL, *none = NULL;
	struct lodge_projects *l = NULL;
	struct lodge_members *m = NULL;

	CHECK(start() == 0);
	CHECK(lodge_project_add(lodge, "ada", "site", "Site", "web", &p) == 0);
	CHECK_STR(p->id, "site");
	CHECK_STR(p->owner, "ada");
	CHECK_STR(p->team, "web");
	lodge_free(p);
	CHECK(lodge_get_user_id_for_project(lodge, "site", &p) == 0);
	CHECK_STR(p->owner, "ada");
	lodge_free(p);
	CHECK(FAILS(lodge_get_user_id_for_project(lodge, "nosuch", &none), LODGE_NOT_FOUND));
	CHECK(lodge_team_put(lodge, "ada", "web", "bob", "VIEWER") == 0);
	CHECK(FAILS(lodge_team_put(lodge, "bob", "web", "eve", "VIEWER"), LODGE_DENIED));
	CHECK(FAILS(lodge_team_put(lodge, NULL, "web", "eve", "KING"), LODGE_INVALID) &&
	      NAMES("role"));
	CHECK(lodge_team_list(lodge, "bob", "web", &m) == 0 && m->count == 2);
	CHECK_STR(m->items[0].user, "ada");
	CHECK_STR(m->items[0].role, "OWNER");
	CHECK_STR(m->items[1].role, "VIEWER");
	lodge_free(m);
	CHECK(lodge_project_list(lodge, "bob", 0, 0, &l) == 0 && l->count == 1 && l->next == 0);
	CHECK_STR(l->items[0].name, "Site");
	lodge_free(l);
	CHECK(lodge_team_remove(lodge, NULL, "web", "bob") == 0);
	CHECK(lodge_project_list(lodge, "bob", 0, 0, &l) == 0 && l->count == 0);
	lodge_free(l);
}

static void fragments_are_saved_sets_of_files(void)
{
	struct lodge_fragment_options o = { SIZED(lodge_fragment_options),
					    .files = "{\"a.txt\": \"one\"}", .title = "the first" };
	struct lodge_fragment *f = NULL;
	struct lodge_fragments *l = NULL;

	CHECK(lodge_fragment_add(lodge, "ada", "site", &o, &f) == 0 && f->files == 1);
	snprintf(first, sizeof(first), "%s", f->id);
	CHECK_STR(f->title, "the first");
	lodge_free(f);
	o.files = "{\"a.txt\": \"two\", \"d/b\": \"__BASE64__AAE=\"}";
	CHECK(lodge_fragment_add(lodge, "ada", "site", &o, &f) == 0 && f->bytes == 5);
	snprintf(second, sizeof(second), "%s", f->id);
	lodge_free(f);
	CHECK(FAILS(lodge_fragment_add(lodge, "eve", "site", &o, &f), LODGE_NOT_FOUND));
	CHECK(lodge_fragment_list(lodge, "ada", "site", 0, 0, &l) == 0 && l->count == 2);
	CHECK_STR(l->items[0].id, second);
	lodge_free(l);
}

static void a_user_is_switched(void)
{
	struct lodge_active_fragment *at = NULL;
	struct lodge_switched *s = NULL;
	struct lodge_ref ref = { 0 };

	CHECK(lodge_get_user_active_fragment(lodge, "ada", &at) == 0 && !at);
	CHECK(FAILS(lodge_switch_user_to_fragment(lodge, "ada", "site", "nosuch", &s),
		    LODGE_NOT_FOUND));
	CHECK(lodge_switch_user_to_project(lodge, "ada", "site", &s) == 0);
	CHECK(s->restored_files == 2 && s->has_restored_files && !s->state_lost);
	CHECK_STR(s->fragment, second);
	ref.id = s->session;
	CHECK(says(&ref, "cat a.txt", "two"));
	lodge_free(s);
	CHECK(lodge_switch_user_to_fragment(lodge, "ada", "site", first, &s) == 0 &&
	      s->restored_files == 1);
	ref.id = s->session;
	CHECK(says(&ref, "cat a.txt; echo; ls d 2>&-; true", "one"));
	snprintf(sandbox, sizeof(sandbox), "%s", s->sandbox);
	lodge_free(s);
	CHECK(lodge_get_user_active_fragment(lodge, "ada", &at) == 0 && at);
	CHECK_STR(at->project, "site");
	CHECK_STR(at->fragment, first);
	lodge_free(at);
}

static void sandboxes_of_users_are_killed(void)
{
	struct lodge_active_fragment *at = NULL;
	struct lodge_switched *s = NULL;
	struct lodge_kills *k = NULL;

	CHECK(lodge_kill_user_active_sandbox(lodge, "ada", &k) == 0);
	CHECK(k->count == 1 && k->killed == 1 && k->failed == 0 && k->items[0].killed);
	CHECK_STR(k->items[0].sandbox, sandbox);
	CHECK_STR(k->items[0].user, "ada");
	lodge_free(k);
	CHECK(lodge_get_user_active_fragment(lodge, "ada", &at) == 0 && !at);
	CHECK(lodge_kill_user_active_sandbox(lodge, "ada", &k) == 0 && k->count == 0);
	lodge_free(k);
	CHECK(lodge_switch_user_to_project(lodge, "ada", "site", &s) == 0);
	lodge_free(s);
	CHECK(lodge_kill_all_user_sandboxes(lodge, &k) == 0 && k->killed == 1);
	lodge_free(k);
}

static void users_have_names(void)
{
	CHECK(lodge_user_set(lodge, "ada", "Ada", "ada@example.com") == 0);
	CHECK(FAILS(lodge_user_set(lodge, "ada", NULL, "nonsense"), LODGE_INVALID) &&
	      NAMES("email"));
}

static void what_is_removed_is_gone(void)
{
	struct lodge_project *p = NULL;

	CHECK(lodge_fragment_remove(lodge, "ada", "site", first) == 0);
	CHECK(lodge_project_remove(lodge, "ada", "site") == 0);
	CHECK(FAILS(lodge_get_user_id_for_project(lodge, "site", &p), LODGE_NOT_FOUND));
}

int main(int argc, char **argv)
{
	home = argc > 1 ? argv[1] : "/var/tmp/none";
	RUN(a_project_has_an_owner_and_a_team);
	RUN(fragments_are_saved_sets_of_files);
	RUN(a_user_is_switched);
	RUN(sandboxes_of_users_are_killed);
	RUN(users_have_names);
	RUN(what_is_removed_is_gone);
	return leave();
}
