/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: they take no session lock and never write. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine/output_share.h"
#include "session/query.h"
#include "session/usage.h"
#include "session/session.h"
#include "session/session_spec.h"
#include "wire/enforcement.h"

bool session_ref_is_sandbox(const struct session_ref *ref)
{
	return ref->id && strncmp(ref->id, "sbx_", 4) == 0;
}

int session_ref_not_found(const struct session_ref *ref, struct err *err)
{
	if (ref->id)
		return err_set(err, ERR_NOT_FOUND, "no %s %.64s",
			       session_ref_is_sandbox(ref) ? "sandbox" : "session", ref->id);
	return err_set(err, ERR_NOT_FOUND, "no session with %.32s '%.128s'",
		       ref->kind ? ref->kind : "key", ref->key ? ref->key : "");
}

int session_ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err)
{
	struct store_binding b = { 0 };

	if (!ref->key || !*ref->key || strlen(ref->key) >= sizeof(b.key) ||
	    (ref->kind && strlen(ref->kind) >= sizeof(b.kind)))
		return session_ref_not_found(ref, err);
	snprintf(b.kind, sizeof(b.kind), "%s", ref->kind ? ref->kind : "key");
	snprintf(b.key, sizeof(b.key), "%s", ref->key);
	*ret = b;
	return 0;
}

static int sandbox_gone(struct engine *e, const struct caller *caller,
			const struct session_ref *ref, struct err *err)
{
	struct store_ended_sandbox b = { 0 };
	struct err none;

	if (session_ended_sandbox(e, caller, ref, &b, &none) < 0)
		return -1;
	err_set(err, ERR_NOT_FOUND, "sandbox %s ended (%s)%s%s; use its session %s instead", b.id,
		session_cause_phrase(b.cause.code), *b.cause.text ? ": " : "", b.cause.text,
		b.session);
	err->sys = SESSION_SANDBOX_ENDED;
	return -1;
}

/* A destroyed session is reported with its cause as long as its tombstone is kept. */
int session_ref_gone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct err *err)
{
	struct store_tombstone t = { 0 };
	struct err none;

	if (session_tombstone(e, caller, ref, &t, &none) < 0)
		return session_ref_is_sandbox(ref) ? sandbox_gone(e, caller, ref, err) : -1;
	err_set(err, ERR_NOT_FOUND, "session %s was deleted (%s)%s%s", t.session,
		session_cause_phrase(t.cause.code), *t.cause.text ? ": " : "", t.cause.text);
	err->sys = ESTALE;
	return -1;
}

static bool is_id(const char *id)
{
	return *id && strlen(id) < STORE_ID;
}

int session_ended_sandbox(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, struct store_ended_sandbox *ret,
			  struct err *err)
{
	struct store_ended_sandbox b = { 0 };

	if (!session_ref_is_sandbox(ref) || !is_id(ref->id))
		return session_ref_not_found(ref, err);
	if (STORE_CALL(e, store_ended_sandbox_get, ref->id, &b, err) < 0 &&
	    err->code != ERR_NOT_FOUND)
		return -1;
	if (!*b.id || strcmp(b.tenant, caller->tenant) != 0)
		return session_ref_not_found(ref, err);
	*ret = b;
	return 0;
}

int session_tombstone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      struct store_tombstone *ret, struct err *err)
{
	struct store_ended_sandbox b;
	struct store_tombstone t;
	struct store_binding by;
	const char *id = ref->id;
	int r;

	if (ref->id ? !is_id(ref->id) : session_ref_binding(ref, &by, err) < 0)
		return session_ref_not_found(ref, err);
	if (session_ref_is_sandbox(ref)) {
		if (session_ended_sandbox(e, caller, ref, &b, err) < 0)
			return -1;
		id = b.session;
	}
	r = id ? STORE_CALL(e, store_tombstone_get, id, &t, err)
	       : STORE_CALL(e, store_tombstone_find, caller->tenant, &by, &t, err);
	if (r < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	if (r < 0 || strcmp(t.tenant, caller->tenant) != 0)
		return session_ref_not_found(ref, err);
	*ret = t;
	return 0;
}

static int read_record(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       struct store_session *ret, struct err *err)
{
	struct store_binding by;
	int r;

	if (ref->id ? !is_id(ref->id) : session_ref_binding(ref, &by, err) < 0)
		return session_ref_not_found(ref, err);
	if (session_ref_is_sandbox(ref))
		r = STORE_CALL(e, store_session_find_sandbox, ref->id, ret, err);
	else
		r = ref->id ? session_read_record(e, ref->id, ret, err)
			    : STORE_CALL(e, store_session_find, caller->tenant, &by, ret, err);
	return r < 0 && err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : r;
}

/* Deadlines in memory are ahead of those in the store. */
static void refresh_record(struct engine *e, struct store_session *s)
{
	struct store_session fresh;

	if (!session_copy_record(e, s->id, &fresh))
		return;
	store_session_fini(s);
	*s = fresh;
}

int session_get(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		struct store_session *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (read_record(e, caller, ref, &s, err) < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_gone(e, caller, ref, err) : -1;
	refresh_record(e, &s);
	if (strcmp(s.tenant, caller->tenant) != 0 || s.state == SESSION_DESTROYING ||
	    (session_ref_is_sandbox(ref) && strcmp(s.sandbox, ref->id) != 0)) {
		(void)session_ref_not_found(ref, err);
		return session_ref_gone(e, caller, ref, err);
	}
	*ret = steal_struct(&s);
	return 0;
}

bool session_is_foreign(struct engine *e, const struct caller *caller, const char *id)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_ref ref = { .id = id };
	struct err ignored;

	return read_record(e, caller, &ref, &s, &ignored) == 0 && s.state != SESSION_DESTROYING &&
	       strcmp(s.tenant, caller->tenant) != 0;
}

int session_list(struct engine *e, const struct store_session_filter *f, struct store_page page,
		 struct store_session_list *ret, struct err *err)
{
	int r = STORE_CALL(e, store_session_list, f, page, ret, err);

	for (size_t i = 0; r == 0 && i < ret->count; i++)
		refresh_record(e, &ret->items[i]);
	return r;
}

int session_stats(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  struct keeper_stats *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (session_get(e, caller, ref, &s, err) < 0)
		return -1;
	if (s.runtime == SESSION_RUNTIME_LIVE) {
		if (keeper_conn_stats(e, s.sandbox, ret, err) == 0) {
			usage_subtract_own(e, s.id, ret);
			return 0;
		}
		return err->code != ERR_NOT_FOUND
			       ? -1
			       : err_set(err, ERR_CONFLICT,
					 "session %s: its sandbox has just ended", s.id);
	}
	return err_set(err, ERR_CONFLICT, "session %s is %s: no sandbox to measure", s.id,
		       state_machine_name(&session_states, s.state));
}

int session_disk_limit(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       uint64_t *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct enforcement f;
	struct limits l;

	if (session_get(e, caller, ref, &s, err) < 0)
		return -1;
	session_limits(e, &s, &l);
	keeper_conn_enforcement(e, &f);
	*ret = f.known && !enforcement_problem(&f, KEEPER_STORE_DISK, "disk_bytes") ? l.disk_bytes
										    : UINT64_MAX;
	return 0;
}

int session_output_memory(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, uint64_t *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(machine_unref) struct machine *v = NULL;

	if (session_get(e, caller, ref, &s, err) < 0)
		return -1;
	v = session_find_machine(e, s.id);
	*ret = v ? output_share_used(v) : 0;
	return 0;
}

int session_is_durable(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       bool *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_layer l = { .durable = true };

	/* what lies below it was there when it was synced */
	if (session_get(e, caller, ref, &s, err) < 0 ||
	    (*s.layer && STORE_CALL(e, store_layer_get, s.layer, &l, err) < 0))
		return -1;
	*ret = l.durable;
	return 0;
}
