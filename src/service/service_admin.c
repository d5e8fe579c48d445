/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service_admin.h"

#include "engine/internal.h"
#include "engine/session_state.h"
#include "session/session_api.h"

const char *engine_home(const struct engine *e)
{
	return e->home;
}

int engine_last_event(struct engine *e, int64_t *ret, struct err *err)
{
	int r = -1;

	WITH_STORE(e, st)
	r = store_event_last(st, ret, err);
	return r;
}

void engine_health(struct engine *e, struct engine_health *ret)
{
	struct engine_health h = { 0 };

	h.store = store_responds(e);
	h.keeper = keeper_conn_is_healthy(e, h.keeper_error, sizeof(h.keeper_error));
	disk_space_get(e, &h.disk);
	*ret = h;
}

unsigned engine_hibernate_all(struct engine *e, const char *actor)
{
	struct store_session_filter f = { .states = 1ull << SESSION_ACTIVE };
	struct store_page page = { .limit = STORE_PAGE_MAX };
	unsigned failed = 0;
	struct err ignored;

	do {
		auto_fini(store_session_list_fini) struct store_session_list l = { 0 };

		if (session_list(e, &f, page, &l, &ignored) < 0)
			return failed + 1;
		for (size_t i = 0; i < l.count; i++) {
			struct caller caller = { l.items[i].tenant, actor, .is_admin = true };
			struct session_ref ref = { .id = l.items[i].id };

			if (session_hibernate(e, &caller, &ref, 0, NULL, &ignored) < 0 &&
			    ignored.code != ERR_NOT_FOUND) /* it was destroyed meanwhile */
				failed++;
		}
		page.after = l.next;
	} while (page.after);
	return failed;
}
