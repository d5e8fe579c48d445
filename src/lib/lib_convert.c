/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of records to their public form. A result contains the engine's record, and its texts
 * point into that. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/lib_convert.h"
#include "machine/exec.h"

_Static_assert((int)LODGE_STATE_DESTROYING == (int)SESSION_DESTROYING &&
		       (int)LODGE_STATE_HIBERNATED == (int)SESSION_HIBERNATED &&
		       (int)LODGE_RUNTIME_LIVE == (int)SESSION_RUNTIME_LIVE,
	       "the states are the same");
_Static_assert((int)LODGE_CREATED == (int)SESSION_CREATED &&
		       (int)LODGE_REPLACED == (int)SESSION_REPLACED &&
		       (int)LODGE_SOURCE_FORK == (int)SESSION_SOURCE_FORK,
	       "the outcomes are the same");
_Static_assert((int)LODGE_CONNECTED == (int)SESSION_PROBE_CONNECTED &&
		       (int)LODGE_NO_SANDBOX == (int)SESSION_PROBE_NO_SANDBOX,
	       "the answers are the same");
_Static_assert((int)LODGE_EXEC_RUNNING == (int)EXEC_RUNNING &&
		       (int)LODGE_EXEC_LOST == (int)EXEC_LOST,
	       "the states of a command are the same");

PUBLIC const char *lodge_state_name(enum lodge_state state)
{
	return state_machine_name(&session_states, state);
}

static const char *text_of(const char *owned)
{
	return owned ? owned : "";
}

/* NULL for an empty cause. */
static const struct lodge_cause *cause_of(const struct store_cause *c, struct lodge_cause *ret)
{
	if (!c->code[0] && !c->at)
		return NULL;
	*ret = (struct lodge_cause){
		.code = c->code, .text = c->text, .actor = c->actor, .at = c->at
	};
	return ret;
}

/* ---- sessions -------------------------------------------------------------------------------- */

enum { FIELD_NAMES = 640 }; /* all names of session_fields_each() */

struct session_box {
	struct lodge_session pub;
	struct store_session rec;
	struct lodge_cause cause;
	char ignored[FIELD_NAMES], adjusted[FIELD_NAMES];
	struct lodge_ref keys[];
};

static void session_box_fini(void *body)
{
	struct session_box *b = body;

	store_session_fini(&b->rec);
}

static enum lodge_end end_of(uint8_t stored)
{
	return stored == SESSION_END_DESTROY ? LODGE_END_DESTROY : LODGE_END_HIBERNATE;
}

static void fill_session(struct session_box *b)
{
	const struct store_session *s = &b->rec;

	for (size_t i = 0; i < s->nbindings; i++)
		b->keys[i] = (struct lodge_ref){ .kind = s->bindings[i].kind,
						 .key = s->bindings[i].key };
	b->pub = (struct lodge_session){
		.id = s->id,
		.user = s->user,
		.template_name = s->template,
		.sandbox = s->sandbox,
		.snapshot = s->snapshot,
		.project = s->project,
		.fragment = s->fragment,
		.spec = text_of(s->spec),
		.metadata = text_of(s->metadata),
		.keys = b->keys,
		.nkeys = s->nbindings,
		.state = (enum lodge_state)s->state,
		.runtime = (enum lodge_runtime)s->runtime,
		.on_idle = end_of(s->on_idle),
		.on_expire = end_of(s->on_expire),
		.paused = s->paused,
		.version = s->version,
		.generation = s->generation,
		.incarnation = s->incarnation,
		.created_at = s->created_at,
		.started_at = s->started_at,
		.last_activity_at = s->last_activity_at,
		.idle_timeout_ms = s->idle_timeout_ms,
		.lifetime_ms = s->lifetime_ms,
		.max_lifetime_ms = s->max_lifetime_ms,
		.delete_after_ms = s->delete_after_ms,
		.hibernated_at = s->hibernated_at,
		.delete_at = session_delete_at(s),
		.ignored = b->ignored,
		.adjusted = b->adjusted,
		.hibernate_at = s->hibernate_at,
		.expires_at = s->expires_at,
		.memory_bytes = s->memory_bytes,
		.disk_bytes = s->disk_bytes,
		.cause = cause_of(&s->cause, &b->cause),
		.last_death = text_of(s->last_death),
	};
}

int lib_put_session(struct store_session *rec, struct lodge_session **ret)
{
	struct session_box *b;

	b = ret ? box_new(sizeof(*b) + rec->nbindings * sizeof(b->keys[0]), session_box_fini)
		: NULL;
	if (!b) {
		store_session_fini(rec);
		return ret ? -1 : 0;
	}
	b->rec = steal_struct(rec);
	fill_session(b);
	*ret = &b->pub;
	return 0;
}

static void add_name(void *arg, const char *name)
{
	char *names = arg;
	size_t n = strlen(names);

	snprintf(names + n, FIELD_NAMES - n, "%s%s", n ? ", " : "", name);
}

int lib_put_changed(struct session_enter_result *how, struct lodge_session **ret)
{
	struct session_box *b;

	if (lib_put_session(&how->session, ret) < 0)
		return -1;
	if (ret) {
		b = (struct session_box *)*ret; /* its first member */
		session_fields_each(&how->ignored, add_name, b->ignored);
		session_fields_each(&how->adjusted, add_name, b->adjusted);
	}
	return 0;
}

/* The record of an entered session has no cause, so its cause member holds the reason of the
 * outcome. */
int lib_put_entered(struct session_enter_result *how, struct lodge_session **ret)
{
	if (how->cause.code[0])
		how->session.cause = how->cause;
	if (lib_put_changed(how, ret) < 0)
		return -1;
	if (ret) {
		(*ret)->outcome = (enum lodge_outcome)how->outcome;
		(*ret)->source = (enum lodge_source)how->source;
		(*ret)->state_lost = how->state_lost;
		(*ret)->ready_us = how->ready_us;
	}
	return 0;
}

int lib_put_tombstone(const struct store_tombstone *rec, struct lodge_tombstone **ret)
{
	struct {
		struct lodge_tombstone pub;
		struct store_tombstone rec;
		struct lodge_cause cause;
	} * b;

	if (!ret)
		return 0;
	b = box_new(sizeof(*b), NULL);
	if (!b)
		return -1;
	b->rec = *rec;
	b->pub = (struct lodge_tombstone){ .id = b->rec.session,
					   .user = b->rec.user,
					   .created_at = rec->created_at,
					   .cause = cause_of(&b->rec.cause, &b->cause) };
	*ret = &b->pub;
	return 0;
}

int lib_put_probed(const struct session_probe_result *rec, struct lodge_probed **ret)
{
	struct {
		struct lodge_probed pub;
		struct session_probe_result rec;
		struct lodge_cause cause;
	} *b = box_new(sizeof(*b), NULL);

	if (!b)
		return -1;
	b->rec = *rec;
	b->pub = (struct lodge_probed){ .answer = (enum lodge_answer)rec->status,
					.cause = cause_of(&b->rec.cause, &b->cause),
					.expires_at = rec->expires_at,
					.retry_after_ms = rec->retry_after_ms };
	*ret = &b->pub;
	return 0;
}

/* ---- commands, snapshots, events ------------------------------------------------------------- */

struct exec_box {
	struct lodge_exec_info pub;
	struct store_exec rec;
};

static void exec_box_fini(void *body)
{
	struct exec_box *b = body;

	store_exec_fini(&b->rec);
}

int lib_put_exec(struct store_exec *rec, struct lodge_exec_info **ret)
{
	struct exec_box *b = box_new(sizeof(*b), exec_box_fini);

	if (!b) {
		store_exec_fini(rec);
		return -1;
	}
	b->rec = steal_struct(rec);
	b->pub = (struct lodge_exec_info){
		.id = b->rec.id,
		.session = b->rec.session,
		.command = text_of(b->rec.command),
		.state = (enum lodge_exec_state)b->rec.state,
		.background = b->rec.background,
		.timed_out = b->rec.timed_out,
		.oom_killed = b->rec.oom_killed,
		.truncated = b->rec.truncated,
		.exit_code = (int)b->rec.exit_code,
		.signal = (int)b->rec.signal,
		.incarnation = b->rec.incarnation,
		.started_at = b->rec.started_at,
		.ended_at = b->rec.ended_at,
		.stdout_bytes = b->rec.stdout_bytes,
		.stderr_bytes = b->rec.stderr_bytes,
		.cpu_ms = b->rec.cpu_ms,
		.max_rss_bytes = b->rec.max_rss_bytes,
		.reason = b->rec.reason,
	};
	*ret = &b->pub;
	return 0;
}

int lib_put_snapshot(const struct store_snapshot *rec, struct lodge_snapshot **ret)
{
	struct {
		struct lodge_snapshot pub;
		struct store_snapshot rec;
	} *b = box_new(sizeof(*b), NULL);

	if (!b)
		return -1;
	b->rec = *rec;
	b->pub = (struct lodge_snapshot){ .id = b->rec.id,
					  .name = b->rec.name,
					  .session = b->rec.session,
					  .generation = rec->generation,
					  .bytes = rec->bytes < 0 ? 0 : rec->bytes,
					  .created_at = rec->created_at };
	*ret = &b->pub;
	return 0;
}

struct event_box {
	struct lodge_event pub;
	struct store_event rec;
	struct lodge_cause cause;
};

static void event_box_fini(void *body)
{
	struct event_box *b = body;

	store_event_fini(&b->rec);
}

static int lib_put_event(struct store_event *rec, struct lodge_event **ret)
{
	struct event_box *b = box_new(sizeof(*b), event_box_fini);

	if (!b) {
		store_event_fini(rec);
		return -1;
	}
	b->rec = steal_struct(rec);
	b->pub = (struct lodge_event){ .id = b->rec.id,
				       .session = b->rec.session,
				       .kind = b->rec.kind,
				       .version = b->rec.version,
				       .cause = cause_of(&b->rec.cause, &b->cause),
				       .data = text_of(b->rec.data),
				       .key = b->rec.key,
				       .user = b->rec.user,
				       .exec = b->rec.exec };
	*ret = &b->pub;
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Public and stored lists differ only in the names of their types. */
#define GIVE_LIST(name, names, info)                                                               \
	static void names##_fini(void *body)                                                       \
	{                                                                                          \
		struct lodge_##names *l = body;                                                    \
                                                                                                   \
		for (size_t i = 0; i < l->count; i++)                                              \
			lodge_free(l->items[i]);                                                   \
	}                                                                                          \
                                                                                                   \
	int lib_put_##names(struct store_##name##_list *l, struct lodge_##names **ret)             \
	{                                                                                          \
		struct {                                                                           \
			struct lodge_##names pub;                                                  \
			struct lodge_##info *items[];                                              \
		} *b = box_new(sizeof(*b) + l->count * sizeof(void *), names##_fini);              \
                                                                                                   \
		if (b)                                                                             \
			b->pub.items = b->items;                                                   \
		for (size_t i = 0; b && i < l->count; i++) {                                       \
			if (lib_put_##name(&l->items[i], &b->items[i]) < 0) {                      \
				lodge_free(b);                                                     \
				b = NULL;                                                          \
			} else {                                                                   \
				b->pub.count++;                                                    \
			}                                                                          \
		}                                                                                  \
		if (b) {                                                                           \
			b->pub.next = l->next;                                                     \
			*ret = &b->pub;                                                            \
		}                                                                                  \
		store_##name##_list_fini(l);                                                       \
		return b ? 0 : -1;                                                                 \
	}

GIVE_LIST(session, sessions, session)
GIVE_LIST(exec, execs, exec_info)
GIVE_LIST(snapshot, snapshots, snapshot)
GIVE_LIST(event, events, event)
