/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: in the head of a request, as records, and their rate limits. */
#include "session_engine.h"

#include <errno.h>

#include "api/core/auth.h"
#include "admit/api_key.h"

static const char *picked;

static bool picks(const char *authorization, const char *x_api_key, const char *want)
{
	picked = NULL;
	return auth_pick(authorization, x_api_key, &picked, &err) == 0 && !strcmp(picked, want);
}

static bool refuses(const char *authorization, const char *x_api_key, unsigned status)
{
	picked = NULL;
	return auth_pick(authorization, x_api_key, &picked, &err) == -1 && !picked &&
	       api_status(&err) == status;
}

static void one_key_is_accepted(void)
{
	CHECK(picks("Bearer lk_0123456789", NULL, "lk_0123456789"));
	CHECK(picks("bearer lk_0123456789", NULL, "lk_0123456789"));
	CHECK(picks(NULL, "lk_0123456789", "lk_0123456789"));
}

static void anything_else_is_refused(void)
{
	static char longer[300];

	memset(longer, 'a', sizeof(longer) - 1);
	CHECK(refuses(NULL, NULL, 401) && err.sys == ENOKEY);
	CHECK(refuses("Bearer lk_0123456789", "lk_0123456789", 400));
	CHECK(refuses("Basic YTpi", NULL, 401));
	CHECK(refuses("Bearer", NULL, 401));
	CHECK(refuses("Bearer ", NULL, 401));
	CHECK(refuses("", NULL, 401));
	CHECK(refuses(NULL, "", 401));
	CHECK(refuses(NULL, "short", 401));
	CHECK(refuses(NULL, longer, 401));
	CHECK(refuses("Bearer  lk_0123456789", NULL, 400));
	CHECK(refuses("Bearer lk_0123456789, Bearer lk_abcdefghij", NULL, 400));
	CHECK(refuses(NULL, "lk_0123456\xc3\xa9", 400));
}

static void scopes_are_few(void)
{
	char session[STORE_ID];
	enum api_scope scope;

	CHECK(auth_scope("admin", &scope, session, &err) == 0 && scope == API_ADMIN && !*session);
	CHECK(auth_scope("tenant", &scope, session, &err) == 0 && scope == API_TENANT);
	CHECK(auth_scope("session", &scope, session, &err) == 0 && scope == API_SESSION);
	CHECK(auth_scope("session:ses_1", &scope, session, &err) == 0 && scope == API_SESSION);
	CHECK_STR(session, "ses_1");
	CHECK(auth_scope("", &scope, session, &err) == -1);
	CHECK(auth_scope("session:", &scope, session, &err) == -1);
	CHECK(auth_scope("admin tenant", &scope, session, &err) == -1);
	CHECK(auth_scope("Admin", &scope, session, &err) == -1);
}

static void keys_are_random_and_hashed(void)
{
	static const uint8_t abc[] = { 0xba, 0x78, 0x16, 0xbf };
	char one[KEY_TEXT], two[KEY_TEXT];
	uint8_t hash[STORE_HASH];

	CHECK(auth_generate_key(one, &err) == 0 && auth_generate_key(two, &err) == 0 &&
	      strcmp(one, two) != 0);
	CHECK(strlen(one) == 67 && !strncmp(one, "lk_", 3));
	CHECK(picks(NULL, one, one));
	CHECK(auth_hash_key("abc", hash, &err) == 0 && !memcmp(hash, abc, sizeof(abc)));
}

/* ---- with an engine -------------------------------------------------------------------------- */

static struct store_key made;

static bool make(const char *text, const char *scopes, int64_t expires_at)
{
	made = (struct store_key){ .tenant = "acme", .name = "n", .expires_at = expires_at };
	snprintf(made.scopes, sizeof(made.scopes), "%s", scopes);
	return auth_hash_key(text, made.hash, &err) == 0 &&
	       api_key_add(engine, "test", &made, &err) == 0;
}

static int enter_with(struct auth *a, const char *text, struct auth_pass *p)
{
	return auth_enter(a, text, "unix", p, &err);
}

static void a_key_works_until_it_is_removed(void)
{
	auto_call(auth_free) struct auth *a = NULL;
	struct auth_pass p = { 0 };

	EMPTY_ENGINE();
	CHECK(auth_new(&(struct api_opts){ .engine = engine }, &a, &err) == 0);
	CHECK(enter_with(a, "lk_nobody_has_it", &p) == -1 && api_status(&err) == 401);
	CHECK(make("lk_first_key", "tenant", 0));
	CHECK(enter_with(a, "lk_first_key", &p) == 0 && p.scope == API_TENANT);
	CHECK_STR(p.key.tenant, "acme");
	auth_leave(&p);
	auth_leave(&p); /* a second call does nothing */
	CHECK(enter_with(a, "lk_first_kez", &p) == -1 && err.sys == EKEYREJECTED);
	CHECK(api_key_remove(engine, "test", &made, &err) == 0);
	auth_forget(a, made.id);
	CHECK(enter_with(a, "lk_first_key", &p) == -1 && err.sys == EKEYREJECTED);
}

static void a_key_expires(void)
{
	auto_call(auth_free) struct auth *a = NULL;
	struct auth_pass p = { 0 };

	EMPTY_ENGINE();
	CHECK(auth_new(&(struct api_opts){ .engine = engine }, &a, &err) == 0);
	CHECK(make("lk_for_a_minute", "session", the_time + MINUTE));
	CHECK(enter_with(a, "lk_for_a_minute", &p) == 0);
	auth_leave(&p);
	pass(MINUTE);
	CHECK(enter_with(a, "lk_for_a_minute", &p) == -1 && err.sys == EKEYEXPIRED);
	CHECK(make("lk_for_nothing", "sing", 0));
	CHECK(enter_with(a, "lk_for_nothing", &p) == -1 && api_status(&err) == 403);
}

static void a_key_has_a_rate_limit(void)
{
	auto_call(auth_free) struct auth *a = NULL;
	struct auth_pass p[3] = { 0 };
	struct api_opts o = { .concurrent = 2 };

	EMPTY_ENGINE();
	o.engine = engine;
	CHECK(auth_new(&o, &a, &err) == 0 && make("lk_is_busy", "admin", 0));
	CHECK(enter_with(a, "lk_is_busy", &p[0]) == 0 && enter_with(a, "lk_is_busy", &p[1]) == 0);
	CHECK(enter_with(a, "lk_is_busy", &p[2]) == -1 && err.sys == EUSERS);
	CHECK(api_status(&err) == 429);
	auth_leave(&p[0]);
	CHECK(enter_with(a, "lk_is_busy", &p[2]) == 0);
	auth_leave(&p[1]);
	auth_leave(&p[2]);
}

static void a_burst_is_used_up(void)
{
	auto_call(auth_free) struct auth *a = NULL;
	struct api_opts o = { .rate = 1, .burst = 3 };
	struct auth_pass p = { 0 };
	unsigned n = 0;

	EMPTY_ENGINE();
	o.engine = engine;
	CHECK(auth_new(&o, &a, &err) == 0 && make("lk_in_a_hurry", "admin", 0));
	for (unsigned i = 0; i < 1000 && enter_with(a, "lk_in_a_hurry", &p) == 0; i++, n++)
		auth_leave(&p);
	CHECK(n >= 3 && n < 1000 && err.sys == EUSERS);
}

static void changes_of_keys_are_recorded_as_events(void)
{
	struct store_event_list l = { 0 };
	bool right;

	EMPTY_ENGINE();
	CHECK(make("lk_for_the_book", "admin", 0));
	CHECK(api_key_remove(engine, "test", &made, &err) == 0);
	CHECK(api_key_remove(engine, "test", &made, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(api_key_get(engine, made.id, &made, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(engine_events(engine, 0, "acme", NULL, 10, &l, &err) == 0);
	right = l.count == 2 && !strcmp(l.items[0].kind, "key_add") &&
		!strcmp(l.items[1].kind, "key_remove") && !strcmp(l.items[1].cause.actor, "test");
	store_event_list_fini(&l);
	CHECK(right);
}

int main(void)
{
	make_home();
	RUN(one_key_is_accepted);
	RUN(anything_else_is_refused);
	RUN(scopes_are_few);
	RUN(keys_are_random_and_hashed);
	RUN(a_key_works_until_it_is_removed);
	RUN(a_key_expires);
	RUN(a_key_has_a_rate_limit);
	RUN(a_burst_is_used_up);
	RUN(changes_of_keys_are_recorded_as_events);
	remove_home();
	return tap_done();
}
