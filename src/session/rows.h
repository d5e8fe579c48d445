/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as rows of a table, with what their sandboxes use now. Reads: they take no session lock
 * and never write. */
#ifndef LODGE_SESSION_ROWS_H
#define LODGE_SESSION_ROWS_H

#include "engine/engine.h"
#include "session/usage.h"

struct session_row {
	struct store_row rec;
	bool has_usage; /* of a running sandbox: */
	struct usage_sample usage;
};

enum session_row_sort {
	SESSION_SORT_CREATED,
	SESSION_SORT_ACTIVE,
	SESSION_SORT_MEMORY,
	SESSION_SORT_CPU,
	SESSION_SORT_DISK,
};

struct session_row_query {
	struct store_row_query rows; /* without its order; no states: all but destroyed ones */
	enum session_row_sort sort;
	/* Measures twice, this far apart, so that the CPU share is that of this time. 0: since the
	 * measurement before, whoever asked for it. */
	int64_t sample_ms;
};

struct session_row_list {
	struct session_row *items; /* owned */
	size_t count;
	int64_t total; /* that match */
	int64_t states[STORE_STATES]; /* that match, whatever their state is */
	bool has_sums; /* not if more than STORE_ROWS_MAX match: */
	uint64_t memory_bytes, disk_bytes; /* of all that match */
	bool more; /* follow these */
};
void session_row_list_fini(struct session_row_list *l);

/* By memory, CPU and disk the first STORE_ROWS_MAX sessions are sorted, those with a sandbox first.
 */
int session_rows(struct engine *e, const struct session_row_query *q, struct session_row_list *ret,
		 struct err *err);
/* Whether memory and disk limits hold for sandboxes of this host. */
bool session_limits_enforced(struct engine *e);
/* What a session uses on disk: its running sandbox, or its sealed files. */
uint64_t session_row_disk(const struct session_row *r);
/* What lodge will do by itself next, and when: "hibernate", "destroy", or NULL. */
const char *session_row_next(const struct store_row *r, int64_t *ret_at);

#endif
