/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "engine/session_state.h"

#include "tap.h"

enum { NOW = 1000000, IDLE = 60000, LIFE = 600000 };

static const struct session_cause_opts why = { SESSION_CAUSE_ERROR, "a reason", "alice" };

static struct store_session in_state(enum session_state state, bool files)
{
	struct store_session s = { .id = "s1",
				   .state = (uint8_t)state,
				   .idle_timeout_ms = IDLE,
				   .lifetime_ms = LIFE,
				   .max_lifetime_ms = 3 * LIFE };

	if (files) {
		strcpy(s.layer, "l1");
		s.runtime = SESSION_RUNTIME_RESUMABLE;
	}
	if (state == SESSION_ACTIVE || state == SESSION_HIBERNATING)
		s.runtime = SESSION_RUNTIME_LIVE;
	return s;
}

static int next_of(enum session_state from, enum session_event ev, bool files)
{
	struct store_session s = in_state(from, files);
	enum session_state to = SESSION_STATES;
	struct err err;

	return session_record_next(&s, ev, &to, &err) < 0 ? -1 : (int)to;
}

#define R (-1)
#define PR SESSION_PROVISIONING
#define AC SESSION_ACTIVE
#define HI SESSION_HIBERNATING
#define HD SESSION_HIBERNATED
#define RE SESSION_RESTORING
#define AR SESSION_ARCHIVED
#define FA SESSION_FAILED
#define DE SESSION_DESTROYING
#define NO SESSION_NONE

/* start ready error use sleep stay sealed alive gone rollback archive unarchive destroy */
static const int with_files[SESSION_STATES][SESSION_EVENTS] = {
	[SESSION_NONE] = { PR, R, R, R, R, R, R, R, R, HD, AR, R, DE },
	[SESSION_PROVISIONING] = { R, AC, FA, R, R, R, R, R, R, R, R, R, DE },
	[SESSION_ACTIVE] = { R, R, R, AC, HI, R, R, AC, HD, RE, R, R, DE },
	[SESSION_HIBERNATING] = { R, R, FA, R, R, AC, HD, R, HD, R, R, R, DE },
	[SESSION_HIBERNATED] = { RE, R, R, R, R, R, R, R, R, HD, AR, R, DE },
	[SESSION_RESTORING] = { R, AC, FA, R, R, R, R, R, R, R, R, R, DE },
	[SESSION_ARCHIVED] = { R, R, R, R, R, R, R, R, R, R, R, HD, DE },
	[SESSION_FAILED] = { RE, R, R, R, R, R, R, AC, HD, HD, AR, R, DE },
	[SESSION_DESTROYING] = { R, R, R, R, R, R, R, R, R, R, R, R, DE },
};

static void every_state_and_event_leads_where_the_document_says(void)
{
	for (int from = 0; from < SESSION_STATES; from++)
		for (int ev = 0; ev < SESSION_EVENTS; ev++)
			CHECK(next_of(from, ev, true) == with_files[from][ev]);
}

static void without_files_a_session_starts_anew(void)
{
	CHECK(next_of(SESSION_FAILED, SESSION_START, false) == SESSION_PROVISIONING);
	CHECK(next_of(SESSION_ACTIVE, SESSION_GONE, false) == SESSION_NONE);
	CHECK(next_of(SESSION_HIBERNATING, SESSION_GONE, false) == SESSION_NONE);
	CHECK(next_of(SESSION_FAILED, SESSION_GONE, false) == SESSION_NONE);
	CHECK(next_of(SESSION_ARCHIVED, SESSION_UNARCHIVE, false) == SESSION_NONE);
}

static void a_running_sandbox_is_never_doubled_nor_forgotten(void)
{
	struct store_session s = in_state(SESSION_FAILED, true);
	enum session_state to = SESSION_STATES;
	struct err err;

	s.runtime = SESSION_RUNTIME_LIVE;
	CHECK(session_record_next(&s, SESSION_START, &to, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK_STR(err.msg, "session s1 is failed but its sandbox lives: \"start\" must wait");
	CHECK(session_record_next(&s, SESSION_ARCHIVE, &to, &err) == -1);
	CHECK(session_record_next(&s, SESSION_ROLLBACK, &to, &err) == -1);
	CHECK(to == SESSION_STATES);
	CHECK(session_record_next(&s, SESSION_ALIVE, &to, &err) == 0 && to == SESSION_ACTIVE);
	CHECK(session_record_next(&s, SESSION_DESTROY, &to, &err) == 0 && to == SESSION_DESTROYING);
}

/* The two tables must agree: no event leads outside the moves, and no move is without an event. */
static void each_allowed_move_has_an_event_and_each_event_an_allowed_move(void)
{
	uint64_t seen[SESSION_STATES] = { 0 };

	for (int from = 0; from < SESSION_STATES; from++)
		for (int ev = 0; ev < SESSION_EVENTS; ev++)
			for (int files = 0; files < 2; files++) {
				int to = next_of(from, ev, files);

				if (to >= 0)
					seen[from] |= SM_BIT(to);
			}
	for (int from = 0; from < SESSION_STATES; from++)
		CHECK(seen[from] == session_states.states[from].to);
}

static uint64_t reachable(enum session_state from)
{
	uint64_t all = SM_BIT(from), before;

	do {
		before = all;
		for (int s = 0; s < SESSION_STATES; s++)
			if (all & SM_BIT(s))
				all |= session_states.states[s].to;
	} while (all != before);
	return all;
}

static void no_state_is_without_exit(void)
{
	CHECK(reachable(SESSION_NONE) == SM_BIT(SESSION_STATES) - 1);
	for (int s = 0; s < SESSION_DESTROYING; s++) {
		CHECK(reachable(s) & SM_BIT(SESSION_ACTIVE));
		CHECK(session_states.states[s].to & SM_BIT(SESSION_DESTROYING));
	}
	CHECK(reachable(SESSION_DESTROYING) == SM_BIT(SESSION_DESTROYING));
}

static void a_number_that_is_no_state_is_refused(void)
{
	for (int ev = 0; ev < SESSION_EVENTS; ev++)
		CHECK(next_of(200, ev, true) == -1 && next_of(SESSION_STATES, ev, false) == -1);
}

static void the_stored_numbers_of_states_do_not_change(void)
{
	static const char *const names[] = { "none",	    "provisioning", "active",
					     "hibernating", "hibernated",   "restoring",
					     "archived",    "failed",	    "destroying" };

	CHECK(sizeof(names) / sizeof(names[0]) == SESSION_STATES);
	for (unsigned i = 0; i < SESSION_STATES; i++)
		CHECK_STR(state_machine_name(&session_states, i), names[i]);
	CHECK(SESSION_RUNTIME_RESUMABLE == 1 && SESSION_RUNTIME_LIVE == 2);
	CHECK(SESSION_END_HIBERNATE == 0 && SESSION_END_DESTROY == 1);
}

static void all_have_names(void)
{
	for (int i = 0; i < SESSION_STATES; i++)
		CHECK(state_machine_find(&session_states,
					 state_machine_name(&session_states, (unsigned)i)) == i);
	for (int i = 0; i < SESSION_EVENTS; i++)
		CHECK(session_event_name(i)[0]);
	for (int i = 1; i < SESSION_CAUSES; i++)
		CHECK(session_cause_name(i)[0] && strlen(session_cause_name(i)) < STORE_WORD);
}

static void active_ends_ten_seconds_before_expiry(void)
{
	struct store_session s = in_state(SESSION_ACTIVE, false);

	CHECK(session_is_active(&s, NOW));
	s.expires_at = NOW + 10000;
	CHECK(!session_is_active(&s, NOW) && session_is_active(&s, NOW - 1));
	s.runtime = SESSION_RUNTIME_RESUMABLE;
	CHECK(!session_is_active(&s, NOW - 1));
	for (int state = 0; state < SESSION_STATES; state++) {
		s = in_state(state, true);
		s.runtime = SESSION_RUNTIME_LIVE;
		CHECK(session_is_active(&s, NOW) == (state == SESSION_ACTIVE));
	}
}

static void a_session_with_saved_files_has_a_snapshot(void)
{
	struct store_session s = in_state(SESSION_ACTIVE, false);

	s.layer[0] = '\0';
	CHECK(!session_has_snapshot(&s));
	snprintf(s.snapshot, sizeof(s.snapshot), "snp_a");
	CHECK(session_has_snapshot(&s));
	s.runtime = SESSION_RUNTIME_NONE; /* its files were lost, so nothing could be resumed */
	CHECK(!session_has_snapshot(&s));
	for (int state = 0; state < SESSION_STATES; state++) {
		s = in_state(state, true);
		CHECK(session_has_files(&s) && session_has_snapshot(&s));
	}
}

static void the_sweep_is_due_at_the_earlier_deadline(void)
{
	struct store_session s = { 0 };

	CHECK(session_due_at(&s) == 0);
	s.hibernate_at = 50000;
	CHECK(session_due_at(&s) == 50000);
	s.expires_at = 55000;
	CHECK(session_due_at(&s) == 45000);
	s.expires_at = 90000;
	CHECK(session_due_at(&s) == 50000);
	s.hibernate_at = 0;
	CHECK(session_due_at(&s) == 80000);
}

/* ---- effects of a transition --------------------------------------------------------------- */

static void ready_starts_the_timers_and_clears_the_cause(void)
{
	struct store_session s = in_state(SESSION_NONE, false);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_START, &why, NOW, &err));
	CHECK(s.state == SESSION_PROVISIONING && s.incarnation == 1);
	CHECK(s.due_at == NOW + SESSION_UNFINISHED_MS);
	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW + 5, &err));
	CHECK(s.state == SESSION_ACTIVE && s.runtime == SESSION_RUNTIME_LIVE);
	CHECK(s.started_at == NOW + 5 && s.last_activity_at == NOW + 5);
	CHECK(s.hibernate_at == NOW + 5 + IDLE && s.expires_at == NOW + 5 + LIFE);
	CHECK(s.due_at == s.hibernate_at && s.cause.code[0] == '\0' && s.cause.at == 0);
}

static void use_postpones_the_deadline_up_to_the_lifetime(void)
{
	struct store_session s = in_state(SESSION_RESTORING, true);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW, &err));
	CHECK(!session_record_move(&s, SESSION_USE, &why, NOW + 1000, &err));
	CHECK(s.hibernate_at == NOW + 1000 + IDLE && s.expires_at == NOW + LIFE);
	CHECK(!session_record_move(&s, SESSION_USE, &why, NOW - 5000,
				   &err)); /* the clock went back */
	CHECK(s.hibernate_at == NOW + 1000 + IDLE && s.last_activity_at == NOW + 1000);
	s.idle_timeout_ms = 1;
	CHECK(!session_record_move(&s, SESSION_USE, &why, NOW + 2000, &err));
	CHECK(s.hibernate_at == NOW + 1000 + IDLE);
	s.idle_timeout_ms = 10 * LIFE;
	CHECK(!session_record_move(&s, SESSION_USE, &why, NOW + 3000, &err));
	CHECK(s.hibernate_at == NOW + 3 * LIFE); /* its maximum, if it is extended */
	CHECK(s.due_at == NOW + LIFE - SESSION_EXPIRY_BUFFER_MS);
}

static void extending_moves_the_expiry_up_to_the_maximum(void)
{
	struct store_session s = in_state(SESSION_RESTORING, true);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW, &err));
	CHECK(session_record_extend(&s, NOW + 1000, LIFE) == LIFE && !session_is_at_maximum(&s));
	CHECK(s.expires_at == NOW + 2 * LIFE && s.hibernate_at == NOW + 1000 + LIFE);
	CHECK(session_record_extend(&s, NOW + 2000, 2 * LIFE) == LIFE && session_is_at_maximum(&s));
	CHECK(s.expires_at == NOW + 3 * LIFE && s.hibernate_at == NOW + 2000 + 2 * LIFE);
	CHECK(session_record_extend(&s, NOW + 3000, INT64_MAX / 4) == 0);
	CHECK(s.expires_at == NOW + 3 * LIFE && s.hibernate_at == s.expires_at);
	CHECK(s.due_at == s.expires_at - SESSION_EXPIRY_BUFFER_MS);
}

static void a_failed_hibernation_keeps_an_extension(void)
{
	struct store_session s = in_state(SESSION_RESTORING, true);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW, &err));
	CHECK(session_record_extend(&s, NOW, LIFE) == LIFE);
	CHECK(!session_record_move(&s, SESSION_EVENT_HIBERNATE, &why, NOW + 1, &err));
	CHECK(!session_record_move(&s, SESSION_ERROR, &why, NOW + 2, &err));
	CHECK(s.state == SESSION_FAILED && s.due_at == 0);
	CHECK(!session_record_move(&s, SESSION_ALIVE, &why, NOW + 3, &err));
	CHECK(s.expires_at == NOW + 2 * LIFE && s.hibernate_at == NOW + LIFE);
	CHECK(s.due_at == NOW + LIFE);
}

static void changed_preferences_keep_an_extension(void)
{
	struct store_session s = in_state(SESSION_RESTORING, true), was;
	struct err err;

	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW, &err));
	CHECK(session_record_extend(&s, NOW, LIFE) == LIFE);
	was = s;
	s.idle_timeout_ms = IDLE / 2;
	session_record_retime(&s, &was, NOW + 1);
	CHECK(s.expires_at == NOW + 2 * LIFE && s.hibernate_at == NOW + 1 + IDLE / 2);
	was = s;
	s.max_lifetime_ms = LIFE + 1;
	session_record_retime(&s, &was, NOW + 2);
	CHECK(s.expires_at == NOW + LIFE + 1);
	was = s;
	s.lifetime_ms = LIFE / 2;
	session_record_retime(&s, &was, NOW + 3);
	CHECK(s.expires_at == NOW + LIFE / 2);
}

static void a_hibernated_session_is_due_when_it_was_kept_long_enough(void)
{
	struct store_session s = in_state(SESSION_HIBERNATING, true);
	struct err err;

	s.delete_after_ms = 5000;
	CHECK(!session_record_move(&s, SESSION_SEALED, &why, NOW, &err));
	CHECK(s.hibernated_at == NOW && session_delete_at(&s) == NOW + 5000);
	CHECK(s.due_at == NOW + 5000);
	s.on_idle = SESSION_END_DESTROY;
	s.last_activity_at = NOW - IDLE + 1;
	CHECK(session_rest_until(&s) == NOW + 1); /* the earlier one */
	CHECK(!session_record_move(&s, SESSION_ARCHIVE, &why, NOW + 1, &err));
	CHECK(!session_delete_at(&s) && !s.hibernated_at && !s.due_at);
	CHECK(!session_record_move(&s, SESSION_UNARCHIVE, &why, NOW + 9000, &err));
	CHECK(session_delete_at(&s) == NOW + 14000);
	CHECK(!session_record_move(&s, SESSION_START, &why, NOW + 9001, &err));
	CHECK(!session_delete_at(&s));
}

static void sealing_raises_the_generation_and_keeps_the_preferences(void)
{
	struct store_session s = in_state(SESSION_PROVISIONING, false);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_READY, &why, NOW, &err));
	CHECK(!session_record_move(&s, SESSION_EVENT_HIBERNATE,
				   &(struct session_cause_opts){ SESSION_CAUSE_IDLE }, NOW, &err));
	CHECK(s.due_at != 0); /* if the engine dies here, the timers find it again */
	strcpy(s.layer, "l1");
	strcpy(s.sandbox, "b1");
	CHECK(!session_record_move(&s, SESSION_SEALED,
				   &(struct session_cause_opts){ SESSION_CAUSE_IDLE }, NOW, &err));
	CHECK(s.state == SESSION_HIBERNATED && s.runtime == SESSION_RUNTIME_RESUMABLE);
	CHECK(s.generation == 1 && !s.sandbox[0]);
	CHECK(!s.hibernate_at && !s.expires_at && !s.due_at && s.idle_timeout_ms == IDLE);
	CHECK_STR(s.cause.code, "idle");
}

static void a_failed_hibernation_keeps_the_sandbox_running(void)
{
	struct store_session s = in_state(SESSION_HIBERNATING, false);
	struct err err;

	strcpy(s.sandbox, "b1");
	CHECK(!session_record_move(&s, SESSION_ERROR, &why, NOW, &err));
	CHECK(s.state == SESSION_FAILED && s.runtime == SESSION_RUNTIME_LIVE);
	CHECK_STR(s.sandbox, "b1");
	CHECK_STR(s.cause.code, "error");
	CHECK_STR(s.cause.text, "a reason");
	CHECK_STR(s.cause.actor, "alice");
	CHECK(s.cause.at == NOW);
	s = in_state(SESSION_PROVISIONING, false);
	CHECK(!session_record_move(&s, SESSION_ERROR, &why, NOW, &err));
	CHECK(s.state == SESSION_FAILED && s.runtime == SESSION_RUNTIME_NONE);
}

static void a_gone_sandbox_is_resumable_only_with_files(void)
{
	struct err err;

	for (int files = 0; files < 2; files++) {
		struct store_session s = in_state(SESSION_ACTIVE, files);

		s.generation = 7;
		s.hibernate_at = s.expires_at = NOW;
		CHECK(!session_record_move(&s, SESSION_GONE,
					   &(struct session_cause_opts){ SESSION_CAUSE_GONE }, NOW,
					   &err));
		CHECK(s.state == (files ? SESSION_HIBERNATED : SESSION_NONE));
		CHECK(s.runtime == (files ? SESSION_RUNTIME_RESUMABLE : SESSION_RUNTIME_NONE));
		CHECK(s.generation == 7 && !s.hibernate_at && !s.due_at);
		CHECK_STR(s.cause.code, "gone");
	}
}

static void destruction_is_due_at_once_and_keeps_its_first_cause(void)
{
	struct store_session s = in_state(SESSION_ACTIVE, true);
	struct err err;

	CHECK(!session_record_move(&s, SESSION_DESTROY,
				   &(struct session_cause_opts){ SESSION_CAUSE_REQUESTED }, NOW,
				   &err));
	CHECK(s.state == SESSION_DESTROYING && s.due_at == NOW && !s.hibernate_at);
	CHECK(!session_record_move(&s, SESSION_DESTROY,
				   &(struct session_cause_opts){ SESSION_CAUSE_ERROR }, NOW + 9,
				   &err));
	CHECK_STR(s.cause.code, "asked");
	CHECK(s.cause.at == NOW);
}

/* Who finishes an interrupted hibernation does not know that an administrator asked for it. */
static void the_first_cause_says_how_a_sandbox_ended(void)
{
	static const struct {
		struct session_cause_opts why;
		enum session_ended ended;
	} cases[] = {
		{ { .cause = SESSION_CAUSE_REQUESTED }, SESSION_ENDED_BY_CALL },
		{ { .cause = SESSION_CAUSE_REQUESTED, .by_admin = true }, SESSION_ENDED_OTHERWISE },
		{ { .cause = SESSION_CAUSE_IDLE }, SESSION_ENDED_OTHERWISE },
		{ { .cause = SESSION_CAUSE_GONE }, SESSION_ENDED_OTHERWISE },
	};
	static const struct session_cause_opts asked = { .cause = SESSION_CAUSE_REQUESTED };
	static const enum session_event rest[] = { SESSION_SEALED, SESSION_ARCHIVE,
						   SESSION_UNARCHIVE, SESSION_START };
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store_session s = in_state(SESSION_ACTIVE, true);

		CHECK(!session_record_move(&s, SESSION_EVENT_HIBERNATE, &cases[i].why, NOW, &err));
		for (size_t k = 0; k < ARRAY_LEN(rest); k++) {
			CHECK(!session_record_move(&s, rest[k], &asked, NOW, &err));
			CHECK(s.ended == cases[i].ended);
		}
		CHECK(!session_record_move(&s, SESSION_READY, &asked, NOW, &err));
		CHECK(s.ended == SESSION_ENDED_NOT);
	}
}

static void a_refused_move_changes_nothing(void)
{
	struct store_session s = in_state(SESSION_ARCHIVED, true), before = s;
	struct err err;

	CHECK(session_record_move(&s, SESSION_START, &why, NOW, &err) == -1);
	CHECK(memcmp(&s, &before, sizeof(s)) == 0);
	CHECK_STR(err.msg, "session s1 is archived: unarchive it first");
}

int main(void)
{
	RUN(every_state_and_event_leads_where_the_document_says);
	RUN(without_files_a_session_starts_anew);
	RUN(a_running_sandbox_is_never_doubled_nor_forgotten);
	RUN(each_allowed_move_has_an_event_and_each_event_an_allowed_move);
	RUN(no_state_is_without_exit);
	RUN(a_number_that_is_no_state_is_refused);
	RUN(the_stored_numbers_of_states_do_not_change);
	RUN(all_have_names);
	RUN(active_ends_ten_seconds_before_expiry);
	RUN(a_session_with_saved_files_has_a_snapshot);
	RUN(the_sweep_is_due_at_the_earlier_deadline);
	RUN(ready_starts_the_timers_and_clears_the_cause);
	RUN(use_postpones_the_deadline_up_to_the_lifetime);
	RUN(extending_moves_the_expiry_up_to_the_maximum);
	RUN(a_failed_hibernation_keeps_an_extension);
	RUN(changed_preferences_keep_an_extension);
	RUN(a_hibernated_session_is_due_when_it_was_kept_long_enough);
	RUN(sealing_raises_the_generation_and_keeps_the_preferences);
	RUN(a_failed_hibernation_keeps_the_sandbox_running);
	RUN(a_gone_sandbox_is_resumable_only_with_files);
	RUN(destruction_is_due_at_once_and_keeps_its_first_cause);
	RUN(the_first_cause_says_how_a_sandbox_ended);
	RUN(a_refused_move_changes_nothing);
	return tap_done();
}
