/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_state.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

#define NONE SM_BIT(SESSION_NONE)
#define PROVISIONING SM_BIT(SESSION_PROVISIONING)
#define ACTIVE SM_BIT(SESSION_ACTIVE)
#define HIBERNATING SM_BIT(SESSION_HIBERNATING)
#define HIBERNATED SM_BIT(SESSION_HIBERNATED)
#define RESTORING SM_BIT(SESSION_RESTORING)
#define ARCHIVED SM_BIT(SESSION_ARCHIVED)
#define FAILED SM_BIT(SESSION_FAILED)
#define DESTROYING SM_BIT(SESSION_DESTROYING)

static const struct state_machine_state states[SESSION_STATES] = {
	[SESSION_NONE] = { "none", PROVISIONING | HIBERNATED | ARCHIVED | DESTROYING },
	[SESSION_PROVISIONING] = { "provisioning", ACTIVE | FAILED | DESTROYING },
	[SESSION_ACTIVE] = { "active",
			     ACTIVE | HIBERNATING | HIBERNATED | NONE | RESTORING | DESTROYING },
	[SESSION_HIBERNATING] = { "hibernating", HIBERNATED | ACTIVE | FAILED | NONE | DESTROYING },
	[SESSION_HIBERNATED] = { "hibernated", RESTORING | HIBERNATED | ARCHIVED | DESTROYING },
	[SESSION_RESTORING] = { "restoring", ACTIVE | FAILED | DESTROYING },
	[SESSION_ARCHIVED] = { "archived", HIBERNATED | NONE | DESTROYING },
	[SESSION_FAILED] = { "failed", PROVISIONING | RESTORING | ACTIVE | HIBERNATED | NONE |
					       ARCHIVED | DESTROYING },
	[SESSION_DESTROYING] = { "destroying", DESTROYING },
};

const struct state_machine session_states = { "session", states, SESSION_STATES };

/* `bare`: the state if there is nothing to resume from. */
static const struct {
	uint64_t from;
	enum session_event event;
	enum session_state to, bare;
} rules[] = {
	{ NONE, SESSION_START, SESSION_PROVISIONING, SESSION_PROVISIONING },
	{ HIBERNATED, SESSION_START, SESSION_RESTORING, SESSION_RESTORING },
	{ FAILED, SESSION_START, SESSION_RESTORING, SESSION_PROVISIONING },
	{ PROVISIONING | RESTORING, SESSION_READY, SESSION_ACTIVE, SESSION_ACTIVE },
	{ PROVISIONING | RESTORING | HIBERNATING, SESSION_ERROR, SESSION_FAILED, SESSION_FAILED },
	{ ACTIVE, SESSION_USE, SESSION_ACTIVE, SESSION_ACTIVE },
	{ ACTIVE, SESSION_EVENT_HIBERNATE, SESSION_HIBERNATING, SESSION_HIBERNATING },
	{ HIBERNATING, SESSION_EVENT_NOT_DUE, SESSION_ACTIVE, SESSION_ACTIVE },
	{ HIBERNATING, SESSION_SEALED, SESSION_HIBERNATED, SESSION_HIBERNATED },
	{ ACTIVE | FAILED, SESSION_ALIVE, SESSION_ACTIVE, SESSION_ACTIVE },
	{ ACTIVE | HIBERNATING | FAILED, SESSION_GONE, SESSION_HIBERNATED, SESSION_NONE },
	{ ACTIVE, SESSION_ROLLBACK, SESSION_RESTORING, SESSION_RESTORING },
	{ NONE | HIBERNATED | FAILED, SESSION_ROLLBACK, SESSION_HIBERNATED, SESSION_HIBERNATED },
	{ NONE | HIBERNATED | FAILED, SESSION_ARCHIVE, SESSION_ARCHIVED, SESSION_ARCHIVED },
	{ ARCHIVED, SESSION_UNARCHIVE, SESSION_HIBERNATED, SESSION_NONE },
	{ NONE | PROVISIONING | ACTIVE | HIBERNATING | HIBERNATED | RESTORING | ARCHIVED | FAILED |
		  DESTROYING,
	  SESSION_DESTROY, SESSION_DESTROYING, SESSION_DESTROYING },
};

static const struct {
	const char *name;
	bool needs_no_sandbox; /* a running one would be lost, or doubled */
} events[SESSION_EVENTS] = {
	[SESSION_START] = { "start", true },
	[SESSION_READY] = { "ready" },
	[SESSION_ERROR] = { "error" },
	[SESSION_USE] = { "use" },
	[SESSION_EVENT_HIBERNATE] = { "sleep" },
	[SESSION_EVENT_NOT_DUE] = { "stay" },
	[SESSION_SEALED] = { "sealed" },
	[SESSION_ALIVE] = { "alive" },
	[SESSION_GONE] = { "gone" },
	[SESSION_ROLLBACK] = { "rollback" },
	[SESSION_ARCHIVE] = { "archive", true },
	[SESSION_UNARCHIVE] = { "unarchive" },
	[SESSION_DESTROY] = { "destroy" },
};

static const char *const causes[SESSION_CAUSES] = {
	[SESSION_CAUSE_NONE] = "",
	[SESSION_CAUSE_REQUESTED] = "asked",
	[SESSION_CAUSE_IDLE] = "idle",
	[SESSION_CAUSE_EXPIRED] = "expired",
	[SESSION_CAUSE_REPLACED] = "replaced",
	[SESSION_CAUSE_CAPACITY] = "room",
	[SESSION_CAUSE_GONE] = "gone",
	[SESSION_CAUSE_STOPPED] = "stopped",
	[SESSION_CAUSE_UNAVAILABLE] = "unavailable",
	[SESSION_CAUSE_INTERRUPTED] = "interrupted",
	[SESSION_CAUSE_ERROR] = "error",
	[SESSION_CAUSE_CLEANUP] = "cleanup",
	[SESSION_CAUSE_RETENTION] = "retention",
};

const char *session_event_name(enum session_event ev)
{
	return events[ev].name;
}

const char *session_cause_name(enum session_cause cause)
{
	return causes[cause];
}

const char *session_death_name(unsigned code)
{
	static const char *const names[] = {
		[SESSION_DEATH_OOM - SESSION_CAUSES] = "oom",
		[SESSION_DEATH_KILLED - SESSION_CAUSES] = "killed",
		[SESSION_DEATH_EXITED - SESSION_CAUSES] = "exited",
		[SESSION_DEATH_HOST_RESTARTED - SESSION_CAUSES] = "host_restarted",
		[SESSION_DEATH_DISK_FULL - SESSION_CAUSES] = "disk_full",
	};

	return code < SESSION_CAUSES ? causes[code] : names[code - SESSION_CAUSES];
}

const char *session_cause_phrase(const char *code)
{
	if (strcmp(code, causes[SESSION_CAUSE_REQUESTED]) == 0)
		return "by request";
	return strcmp(code, causes[SESSION_CAUSE_CAPACITY]) == 0 ? "to free capacity" : code;
}

struct session_cause_opts session_cause_requested(const struct caller *caller)
{
	return (struct session_cause_opts){ .cause = SESSION_CAUSE_REQUESTED,
					    .actor = caller->actor,
					    .by_admin = caller->is_admin };
}

struct store_cause session_cause_record(const struct session_cause_opts *why, int64_t at)
{
	struct store_cause c = { .at = at };

	snprintf(c.code, sizeof(c.code), "%s", causes[why->cause]);
	snprintf(c.text, sizeof(c.text), "%s", why->text ? why->text : "");
	snprintf(c.actor, sizeof(c.actor), "%s", why->actor ? why->actor : "");
	return c;
}

bool session_has_files(const struct store_session *s)
{
	return s->layer[0] != '\0';
}

bool session_has_snapshot(const struct store_session *s)
{
	return session_has_files(s) || (s->runtime == SESSION_RUNTIME_LIVE && s->snapshot[0]);
}

bool session_is_active(const struct store_session *s, int64_t now)
{
	return s->state == SESSION_ACTIVE && s->runtime == SESSION_RUNTIME_LIVE &&
	       (s->expires_at == 0 || now < s->expires_at - SESSION_EXPIRY_BUFFER_MS);
}

int64_t session_due_at(const struct store_session *s)
{
	int64_t expiry = s->expires_at ? s->expires_at - SESSION_EXPIRY_BUFFER_MS : 0;

	if (!s->hibernate_at || !expiry)
		return s->hibernate_at + expiry; /* at most one of them is set */
	return s->hibernate_at < expiry ? s->hibernate_at : expiry;
}

/* ---- moves --------------------------------------------------------------------------------- */

static bool may_find_sandbox(const struct store_session *s, enum session_event ev)
{
	/* rolling back a failed session leaves it at rest; a running sandbox would be lost */
	bool rest = ev == SESSION_ROLLBACK && s->state == SESSION_FAILED;

	return s->runtime != SESSION_RUNTIME_LIVE || !(events[ev].needs_no_sandbox || rest);
}

int session_record_next(const struct store_session *s, enum session_event ev,
			enum session_state *ret, struct err *err)
{
	const char *name = state_machine_name(&session_states, s->state);

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		enum session_state to = session_has_files(s) ? rules[i].to : rules[i].bare;

		if (rules[i].event != ev || s->state >= SESSION_STATES ||
		    !(rules[i].from & SM_BIT(s->state)))
			continue;
		if (!may_find_sandbox(s, ev))
			return err_set(err, ERR_CONFLICT,
				       "session %s is %s but its sandbox lives: \"%s\" must wait",
				       s->id, name, events[ev].name);
		if (state_machine_check(&session_states, s->state, to, err) < 0)
			return -1;
		*ret = to;
		return 0;
	}
	if (s->state == SESSION_ARCHIVED)
		return err_set(err, ERR_CONFLICT, "session %s is archived: unarchive it first",
			       s->id);
	return err_set(err, ERR_CONFLICT, "session %s is %s: \"%s\" is not possible now", s->id,
		       name, events[ev].name);
}

static void stop_timers(struct store_session *s)
{
	s->hibernate_at = s->expires_at = 0; /* the timeouts stay */
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The latest end of its sandbox, however often it is extended. */
static int64_t end_of_life(const struct store_session *s)
{
	return s->max_lifetime_ms ? s->started_at + s->max_lifetime_ms : INT64_MAX;
}

/* Only postpones, and never past the maximum lifetime. The expiry is another deadline, which may be
 * earlier, and may move. */
static void push_timers(struct store_session *s, int64_t now, int64_t ms)
{
	int64_t idle = ms ? now + ms : 0;

	if (now > s->last_activity_at)
		s->last_activity_at = now;
	if (idle > s->hibernate_at)
		s->hibernate_at = earlier(idle, end_of_life(s));
}

static void set_expiry(struct store_session *s)
{
	s->expires_at =
		s->lifetime_ms ? earlier(s->started_at + s->lifetime_ms, end_of_life(s)) : 0;
}

/* From its preferences and the start of its sandbox. */
static void reset_timers(struct store_session *s, int64_t now)
{
	set_expiry(s);
	s->hibernate_at = 0;
	push_timers(s, now, s->idle_timeout_ms);
}

void session_record_reset(struct store_session *s, int64_t now)
{
	reset_timers(s, now);
	s->due_at = session_due_at(s);
}

int64_t session_record_extend(struct store_session *s, int64_t now, int64_t ms)
{
	int64_t before = s->expires_at;

	if (before && before < end_of_life(s))
		s->expires_at = earlier(before + ms, end_of_life(s));
	push_timers(s, now, ms);
	s->due_at = session_due_at(s);
	return s->expires_at - before;
}

bool session_is_at_maximum(const struct store_session *s)
{
	return s->expires_at && s->expires_at >= end_of_life(s);
}

void session_record_retime(struct store_session *s, const struct store_session *was, int64_t now)
{
	if (s->lifetime_ms != was->lifetime_ms)
		set_expiry(s);
	else if (s->expires_at)
		s->expires_at = earlier(s->expires_at, end_of_life(s));
	s->hibernate_at = s->idle_timeout_ms != was->idle_timeout_ms
				  ? 0
				  : earlier(s->hibernate_at, end_of_life(s));
	push_timers(s, now, s->idle_timeout_ms);
	s->due_at = session_due_at(s);
}

static void lose_sandbox(struct store_session *s)
{
	s->runtime = session_has_files(s) ? SESSION_RUNTIME_RESUMABLE : SESSION_RUNTIME_NONE;
	s->sandbox[0] = '\0';
	s->paused = false;
	stop_timers(s);
}

/* The first cause counts: what finishes an interrupted hibernation does not know who asked. A move
 * to "active" clears it again. */
static void note_end(struct store_session *s, const struct session_cause_opts *why)
{
	if (s->runtime != SESSION_RUNTIME_LIVE || s->ended)
		return;
	s->ended = why->cause == SESSION_CAUSE_REQUESTED && !why->by_admin
			   ? SESSION_ENDED_BY_CALL
			   : SESSION_ENDED_OTHERWISE;
}

/* What the event changes besides state and cause. s->state is still the old one. */
static void change(struct store_session *s, enum session_event ev, int64_t now)
{
	switch (ev) {
	case SESSION_START:
		s->incarnation++;
		break;
	case SESSION_READY:
		s->runtime = SESSION_RUNTIME_LIVE;
		s->started_at = s->last_activity_at = now;
		reset_timers(s, now);
		break;
	case SESSION_ERROR:
		/* A sandbox that could not be hibernated stays, with its deadlines: a probe may
		 * find it healthy. */
		if (s->state != SESSION_HIBERNATING)
			lose_sandbox(s);
		break;
	case SESSION_USE:
		push_timers(s, now, s->idle_timeout_ms);
		break;
	case SESSION_SEALED:
		s->generation++;
		lose_sandbox(s);
		s->runtime = SESSION_RUNTIME_RESUMABLE;
		break;
	case SESSION_GONE:
		lose_sandbox(s);
		break;
	case SESSION_ROLLBACK:
		s->generation++;
		s->incarnation += s->state == SESSION_ACTIVE;
		lose_sandbox(s);
		s->runtime = SESSION_RUNTIME_RESUMABLE;
		break;
	case SESSION_DESTROY:
		stop_timers(s);
		break;
	case SESSION_EVENT_HIBERNATE:
	case SESSION_EVENT_NOT_DUE:
	case SESSION_ALIVE:
	case SESSION_ARCHIVE:
	case SESSION_UNARCHIVE:
	case SESSION_EVENTS:
		break;
	}
}

/* A session with on_idle "destroy" is also destroyed while hibernated, if something else than
 * its idle timeout hibernated it. */
static int64_t idle_end(const struct store_session *s)
{
	int64_t since = s->last_activity_at ? s->last_activity_at : s->created_at;

	return s->on_idle == SESSION_END_DESTROY && s->idle_timeout_ms ? since + s->idle_timeout_ms
								       : 0;
}

int64_t session_delete_at(const struct store_session *s)
{
	return s->state == SESSION_HIBERNATED && s->delete_after_ms && s->hibernated_at
		       ? s->hibernated_at + s->delete_after_ms
		       : 0;
}

int64_t session_rest_until(const struct store_session *s)
{
	int64_t idle = idle_end(s), kept = session_delete_at(s);

	return idle && kept ? earlier(idle, kept) : idle + kept; /* at most one of them is set */
}

bool session_is_at_rest(const struct store_session *s)
{
	return SM_BIT(s->state) & (NONE | HIBERNATED) ||
	       (s->state == SESSION_FAILED && s->runtime != SESSION_RUNTIME_LIVE);
}

int session_record_move(struct store_session *s, enum session_event ev,
			const struct session_cause_opts *why, int64_t now, struct err *err)
{
	enum session_state to;

	if (session_record_next(s, ev, &to, err) < 0)
		return -1;
	note_end(s, why);
	change(s, ev, now);
	if (to == SESSION_ACTIVE) {
		s->cause = (struct store_cause){ 0 };
		s->ended = SESSION_ENDED_NOT;
	} else if (ev != SESSION_DESTROY || s->state != SESSION_DESTROYING) {
		/* of a destruction the first cause counts */
		s->cause = session_cause_record(why, now);
	}
	s->state = (uint8_t)to;
	s->hibernated_at = to == SESSION_HIBERNATED ? now : 0;
	/* the timers check a destroyed session at once, and an unfinished one after a while */
	if (to == SESSION_DESTROYING)
		s->due_at = now;
	else if (SM_BIT(to) & (PROVISIONING | RESTORING | HIBERNATING))
		s->due_at = now + SESSION_UNFINISHED_MS;
	else if (session_is_at_rest(s))
		s->due_at = session_rest_until(s);
	else if (to == SESSION_FAILED)
		s->due_at = 0; /* session_revive() first */
	else
		s->due_at = session_due_at(s);
	return 0;
}
