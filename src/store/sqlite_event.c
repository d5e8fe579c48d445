/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

/* An event keeps the key and user that its session has now: it may outlive the session. */
static int append_event(struct store *st, const struct store_event *e, int64_t *ret_id,
			struct err *err)
{
	static const char describe[] =
		"UPDATE event SET user = (SELECT user FROM session WHERE id = ?2),"
		" key = (SELECT key FROM binding WHERE session = ?2 AND kind = 'key'"
		" ORDER BY key LIMIT 1) WHERE id = ?1";
	int64_t id;

	if (db_run_record(st, COLUMNS_INSERT(event), &columns_event, e, err) < 0)
		return -1;
	st->events++;
	id = sqlite3_last_insert_rowid(st->sql);
	if (*e->session &&
	    db_run(st, describe, DB_VALUES(db_int(id), db_text(e->session)), err) < 0)
		return -1;
	*ret_id = id;
	return 0;
}

uint64_t store_event_writes(const struct store *st)
{
	return st->events;
}

int store_event_append(struct store *st, struct store_event *e, struct err *err)
{
	int64_t id = 0;

	if (check_record(&columns_event, e, err) < 0 || db_begin(st, err) < 0)
		return -1;
	if (db_end(st, append_event(st, e, &id, err), err) < 0)
		return -1;
	e->id = id;
	return 0;
}

#define EVENTS COLUMNS_SELECT(event, "WHERE (?1 IS NULL OR tenant = ?1)")
#define FILTER                                                                                     \
	" AND (?3 IS NULL OR user = ?3)"                                                           \
	" AND (?4 IS NULL OR instr(',' || ?4 || ',', ',' || kind || ','))"                         \
	" AND id > ?5 AND (?6 = 0 OR id < ?6) AND (?7 = 0 OR session IS NOT NULL)"
#define OLDEST " ORDER BY id LIMIT ?8"
#define NEWEST " ORDER BY id DESC LIMIT ?8"

/* Separate statements, so that the one with a session uses its index. */
static const char *select_events(const struct store_event_filter *f)
{
	if (f->session)
		return f->newest_first ? EVENTS " AND session = ?2" FILTER NEWEST
				       : EVENTS " AND session = ?2" FILTER OLDEST;
	return f->newest_first ? EVENTS " AND ?2 IS NULL" FILTER NEWEST
			       : EVENTS " AND ?2 IS NULL" FILTER OLDEST;
}

int store_event_list(struct store *st, const struct store_event_filter *f, unsigned limit,
		     struct store_event_list *ret, struct err *err)
{
	struct store_event_list l;

	if (check_filter("tenant", f->tenant, err) < 0 ||
	    check_filter("session", f->session, err) < 0 ||
	    check_filter("user", f->user, err) < 0 ||
	    check_page((struct store_page){ .limit = limit }, err) < 0)
		return -1;
	/* One more than the page has shows whether another page follows. */
	if (db_get_list(st, select_events(f),
			DB_VALUES(db_text(f->tenant), db_text(f->session), db_text(f->user),
				  db_text(f->kinds), db_int(f->after), db_int(f->before),
				  db_int(f->of_sessions), db_int((int64_t)limit + 1)),
			&columns_event, &l, err) < 0)
		return -1;
	if (l.count > limit) {
		store_event_fini(&l.items[--l.count]);
		l.next = l.items[l.count - 1].id;
	}
	*ret = l;
	return 0;
}

int store_event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		      unsigned limit, struct store_event_list *ret, struct err *err)
{
	struct store_event_filter f = { .tenant = tenant, .session = session, .after = id };

	return store_event_list(st, &f, limit, ret, err);
}

int store_event_last(struct store *st, int64_t *ret, struct err *err)
{
	return db_number(st, "SELECT seq FROM sqlite_sequence WHERE name = 'event'", NULL, 0, ret,
			 err);
}

int store_event_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM event WHERE cause_at < ?1", DB_VALUES(db_int(before)),
			err);
}
