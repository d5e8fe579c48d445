/* SPDX-License-Identifier: Apache-2.0 */
#include "session/admin.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/keeper_client.h"
#include "session/inside.h"

const char *engine_home(const struct engine *e)
{
	return e->home;
}

int engine_last_event(struct engine *e, int64_t *ret, struct err *err)
{
	int r = -1;

	DB (e, st)
		r = st->event->last(st, ret, err);
	return r;
}

/* One that is being spoken to answers. */
static bool keeper_answers(struct engine *e)
{
	struct pollfd p = { .fd = -1 };

	if (pthread_mutex_trylock(&e->keep_mutex) != 0)
		return true;
	if (e->keeper)
		p.fd = keeper_client_fd(e->keeper);
	pthread_mutex_unlock(&e->keep_mutex);
	return p.fd >= 0 && poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

void engine_health(struct engine *e, struct engine_health *ret)
{
	struct engine_health h = { 0 };
	struct err err;
	int64_t last;

	h.store = engine_last_event(e, &last, &err) == 0;
	if (!h.store)
		snprintf(h.store_error, sizeof(h.store_error), "%s", err.msg);
	h.keeper = keeper_answers(e);
	if (!h.keeper)
		snprintf(h.keeper_error, sizeof(h.keeper_error),
			 "the keeper ended; the next call starts another");
	*ret = h;
}

static int drop_files(struct engine *e, const char *name, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_TEMPLATE_DROP, NULL);
	struct keeper_client *k = keep_lock(e, err);
	int r;

	if (!k)
		return -1;
	snprintf(req.template, sizeof(req.template), "%s", name);
	r = keeper_client_call(k, &req, NULL, 0, NULL, NULL, err);
	keep_unlock(e);
	return r < 0 && err->code == ERR_NOT_FOUND ? 0 : r;
}

int template_drop(struct engine *e, const char *name, struct err *err)
{
	struct template t;
	int r;

	if (!template_name_is_valid(name))
		return err_set(err, ERR_NOT_FOUND, "no template \"%.64s\"", name);
	if (!strcmp(name, "host") || !strcmp(name, "empty"))
		return err_set(err, ERR_CONFLICT, "template \"%s\" is built in", name);
	r = template_load(e->home, name, &t, err);
	template_fini(&t);
	if (r < 0 && err->code == ERR_NOT_FOUND)
		return -1;
	return drop_files(e, name, err) < 0 ? -1 : template_remove(e->home, name, err);
}

unsigned engine_hibernate_all(struct engine *e, const char *actor)
{
	struct store_session_filter f = { .states = 1ull << SESSION_ACTIVE };
	struct store_page page = { .limit = STORE_PAGE_MAX };
	unsigned failed = 0;
	struct err ignored;

	do {
		struct store_session_list l = { 0 };

		if (session_list(e, &f, page, &l, &ignored) < 0)
			return failed + 1;
		for (size_t i = 0; i < l.count; i++) {
			struct caller who = { l.items[i].tenant, actor };
			struct session_ref ref = { .id = l.items[i].id };
			struct store_session s;

			if (session_hibernate(e, &who, &ref, 0, &s, &ignored) == 0)
				store_session_fini(&s);
			else if (ignored.code != ERR_NOT_FOUND) /* somebody was faster */
				failed++;
		}
		page.after = l.next;
		store_session_list_fini(&l);
	} while (page.after);
	return failed;
}
