/* SPDX-License-Identifier: Apache-2.0 */
#include "project/session_walk.h"
#include "session/session_api.h"

int session_walk(struct engine *e, const struct caller *caller,
		 const struct store_session_filter *f, session_walk_fn *fn, void *arg,
		 struct err *err)
{
	struct store_page page = { .limit = 100 };
	int r;

	do {
		struct store_session_list l = { 0 };

		r = session_list(e, f, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			r = fn(e, caller, &l.items[i], arg, err);
		page.after = l.next;
		store_session_list_fini(&l);
	} while (r == 0 && page.after);
	return r;
}
