/* SPDX-License-Identifier: Apache-2.0 */
/* How often rows measure their sandboxes. */
#include "session_engine.h"
#include "session/rows.h"
#include "session/session.h"

enum { SESSIONS = 20 }; /* more than one batch */

static struct session_row_list rows;

static bool list(unsigned offset, unsigned limit, enum session_row_sort sort)
{
	struct session_row_query q = {
		.rows = { .by = { .tenant = me.tenant }, .offset = offset, .limit = limit },
		.sort = sort
	};

	session_row_list_fini(&rows);
	if (session_rows(engine, &q, &rows, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static void count_fresh(struct session *n, void *arg)
{
	if (n->sample.at == the_time)
		++*(int *)arg;
}

/* How many sandboxes were measured at this time. */
static int fresh(void)
{
	int n = 0;

	session_each(engine, count_fresh, &n);
	return n;
}

static bool enter_all(void)
{
	char name[16];

	for (int i = 0; i < SESSIONS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		if (!enter(name))
			return false;
	}
	return true;
}

static void a_page_measures_what_it_shows(void)
{
	EMPTY_ENGINE();
	CHECK(enter_all() && list(0, SESSIONS, SESSION_SORT_CREATED));
	CHECK(rows.count == SESSIONS && fresh() == SESSIONS && rows.memory_bytes > 0);
	for (size_t i = 0; i < rows.count; i++)
		CHECK(rows.items[i].has_usage && rows.items[i].usage.stats.memory_bytes > 0);
	pass(999);
	CHECK(list(0, SESSIONS, SESSION_SORT_CREATED) && fresh() == 0);
	pass(1);
	CHECK(list(3, 2, SESSION_SORT_CREATED) && rows.count == 2 && fresh() == 2);
	CHECK(rows.has_sums && rows.memory_bytes > rows.items[0].usage.stats.memory_bytes);
	CHECK(rows.items[0].usage.at == the_time && rows.items[1].usage.at == the_time);
}

static void sums_are_five_seconds_old_at_most(void)
{
	EMPTY_ENGINE();
	CHECK(enter_all() && list(0, 1, SESSION_SORT_ACTIVE) && fresh() == SESSIONS);
	pass(4999);
	CHECK(list(0, 1, SESSION_SORT_ACTIVE) && fresh() == 1);
	pass(1);
	CHECK(list(0, 1, SESSION_SORT_ACTIVE) && fresh() == SESSIONS - 1);
}

static void sorting_by_usage_measures_all(void)
{
	EMPTY_ENGINE();
	CHECK(enter_all() && list(0, 1, SESSION_SORT_CREATED) && fresh() == SESSIONS);
	pass(1000);
	CHECK(list(0, 1, SESSION_SORT_MEMORY) && rows.count == 1 && fresh() == SESSIONS);
}

static void the_next_step_is_the_first_deadline(void)
{
	struct store_row r = { .state = SESSION_ACTIVE,
			       .hibernate_at = 50000,
			       .expires_at = 90000 };
	int64_t at = 0;

	CHECK_STR(session_row_next(&r, &at), "hibernate");
	CHECK(at == 50000);
	r.hibernate_at = 85000; /* a sandbox ends ten seconds before it expires */
	r.on_expire = SESSION_END_DESTROY;
	CHECK_STR(session_row_next(&r, &at), "destroy");
	CHECK(at == 80000);
	r.expires_at = 0;
	CHECK_STR(session_row_next(&r, &at), "hibernate");
	CHECK(at == 85000);
}

int main(void)
{
	make_home();
	RUN(the_next_step_is_the_first_deadline);
	RUN(a_page_measures_what_it_shows);
	RUN(sums_are_five_seconds_old_at_most);
	RUN(sorting_by_usage_measures_all);
	session_row_list_fini(&rows);
	remove_home();
	return tap_done();
}
