/* SPDX-License-Identifier: Apache-2.0 */
/* How long a sandbox can be extended, and how long a hibernated session is kept. */
#include "session_engine.h"

#include "service/timers.h"

static const struct session_opts brief = { .user = "ann",
					   .idle_timeout_ms = 10 * MINUTE,
					   .max_lifetime_ms = 2 * HOUR };

static void an_extended_sandbox_lives_as_long_as_the_answer_says(void)
{
	struct session_opts want = brief;
	struct session_ref a = key("a");
	struct session_extension how;
	struct store_session s;

	ENGINE();
	want.lifetime_ms = HOUR;
	want.idle_timeout_ms = 5 * HOUR;
	CHECK(enter_as("a", want, NULL) == 0);
	pass(50 * MINUTE);
	CHECK(session_extend(engine, &me, &a, 30 * MINUTE, 0, &how, NULL, &err) == 0);
	CHECK(how.by_ms == 30 * MINUTE && !how.at_maximum);
	pass(39 * MINUTE); /* past the first expiry */
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	CHECK(session_extend(engine, &me, &a, HOUR, 0, &how, NULL, &err) == 0);
	CHECK(how.by_ms == 30 * MINUTE && how.at_maximum); /* less than requested */
	CHECK(session_extend(engine, &me, &a, HOUR, 0, &how, NULL, &err) == 0 && how.by_ms == 0);
	CHECK(look("a", &s) >= 0 && s.expires_at == s.started_at + 2 * HOUR);
	pass(31 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is_cause("a", SESSION_CAUSE_EXPIRED));
	CHECK(look("a", &s) >= 0);
	CHECK_STR(s.cause.text, "lifetime of 7200 s is over");
}

static void hibernated_sessions_are_deleted_when_their_retention_ends(void)
{
	struct session_opts own = brief, keep = brief;
	struct session_ref a = key("a"), b = key("b");
	struct store_tombstone t;
	struct store_session s;

	ENGINE(.delete_after_ms = 3 * HOUR);
	own.delete_after_ms = HOUR;
	keep.delete_after_ms = SESSION_KEEP;
	CHECK(enter_as("a", brief, NULL) == 0 && enter_as("b", own, NULL) == 0);
	CHECK(enter_as("c", keep, NULL) == 0);
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 3 && look("b", &s) >= 0);
	CHECK(session_delete_at(&s) == the_time + HOUR);
	pass(HOUR - MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("b", SESSION_HIBERNATED));
	CHECK(says("b", "true", "")); /* a use starts it anew */
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("b", SESSION_HIBERNATED));
	close_engine();
	pass(HOUR);
	CHECK(open_engine((struct engine_opts){ 0 })); /* what fell due without an engine */
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(session_tombstone(engine, &me, &b, &t, &err) == 0);
	CHECK_STR(t.cause.code, "retention");
	CHECK_STR(t.cause.text, "hibernated for 1h (delete_after)");
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 1 && session_tombstone(engine, &me, &a, &t, &err) == 0);
	pass(1000ll * HOUR);
	CHECK(engine_run_timers(engine) == 0 && is("c", SESSION_HIBERNATED));
}

int main(void)
{
	make_home();
	RUN(an_extended_sandbox_lives_as_long_as_the_answer_says);
	RUN(hibernated_sessions_are_deleted_when_their_retention_ends);
	remove_home();
	return tap_done();
}
