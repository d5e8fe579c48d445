/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions: enter, query, update, delete. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "api/core/internal.h"
#include "api/v1/v1_rows.h"
#include "api/v1/v1_sessions.h"
#include "layers/snapshot_record.h"
#include "service/service_admin.h"
#include "session/session_times.h"

enum { WAIT_MAX_MS = 60 * 1000 };

/* ---- enter ----------------------------------------------------------------------------------- */

static const char enter_fields[] =
	"key user thread project fragment template snapshot limits env run_as workdir class "
	"idle_timeout_ms lifetime_ms max_lifetime_ms delete_after_ms on_idle on_expire network "
	"policy metadata if_exists pin idempotency_key max_active_per_user on_exceed wait_ms "
	"asleep";

static int parse_end(const json_t *b, const char *name, enum session_end *ret, struct err *err)
{
	bool destroy = false;

	if (api_choice(b, name, "hibernate", "destroy", &destroy, err) < 0)
		return -1;
	*ret = destroy ? SESSION_END_DESTROY : SESSION_END_HIBERNATE;
	return 0;
}

/* Unsupported options are rejected, not ignored. */
static int check_network(const json_t *b, struct err *err)
{
	const char *network = "none";

	if (api_str(b, "network", &network, err) < 0)
		return -1;
	if (strcmp(network, "none") != 0)
		return err_set(err, ERR_INVALID,
			       "network: must be \"none\" (sandboxes have no network)");
	return 0;
}

static int parse_metadata(struct api_call *c, const json_t *b, const char **ret, struct err *err)
{
	const json_t *v = api_member(b, "metadata");
	char *text;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return err_set(err, ERR_INVALID, "metadata: must be an object");
	text = arena_keep(c->arena, json_dumps(v, JSON_COMPACT), free);
	if (!text)
		return err_sys(err, ENOMEM, "metadata");
	*ret = text;
	return 0;
}

static int parse_names(const json_t *b, struct session_opts *w, struct err *err)
{
	if (api_str(b, "user", &w->user, err) < 0 || api_str(b, "project", &w->project, err) < 0 ||
	    api_str(b, "fragment", &w->fragment, err) < 0 ||
	    api_str(b, "template", &w->template, err) < 0 ||
	    api_str(b, "snapshot", &w->snapshot, err) < 0 ||
	    api_str(b, "policy", &w->policy, err) < 0 || api_str(b, "pin", &w->pin, err) < 0 ||
	    api_str(b, "idempotency_key", &w->idempotency_key, err) < 0)
		return -1;
	return 0;
}

static int parse_times(const json_t *b, struct session_opts *w, struct err *err)
{
	int64_t keep = 0;

	if (api_int(b, "idle_timeout_ms", 1, INT64_MAX, &w->idle_timeout_ms, err) < 0 ||
	    api_int(b, "lifetime_ms", 1, INT64_MAX, &w->lifetime_ms, err) < 0 ||
	    api_int(b, "max_lifetime_ms", 1, INT64_MAX, &w->max_lifetime_ms, err) < 0 ||
	    api_int(b, "delete_after_ms", 0, SESSION_TIME_MAX_MS, &keep, err) < 0 ||
	    parse_end(b, "on_idle", &w->on_idle, err) < 0 ||
	    parse_end(b, "on_expire", &w->on_expire, err) < 0)
		return -1;
	w->has_on_idle = api_member(b, "on_idle");
	w->has_on_expire = api_member(b, "on_expire");
	if (api_member(b, "delete_after_ms"))
		w->delete_after_ms = keep ? keep : SESSION_KEEP;
	return 0;
}

static int parse_numbers(const json_t *b, struct session_opts *w, struct err *err)
{
	int64_t per_user = 0;
	bool replace = false;

	if (parse_times(b, w, err) < 0 ||
	    api_int(b, "wait_ms", 0, WAIT_MAX_MS, &w->wait_ms, err) < 0 ||
	    api_int(b, "max_active_per_user", 1, INT_MAX, &per_user, err) < 0 ||
	    api_choice(b, "on_exceed", "refuse", "replace", &replace, err) < 0 ||
	    api_choice(b, "if_exists", "use", "fail", &w->must_be_new, err) < 0 ||
	    api_bool(b, "asleep", &w->no_start, err) < 0)
		return -1;
	w->max_active_per_user = (unsigned)per_user;
	w->on_exceed = replace ? SESSION_EXCEED_REPLACE : SESSION_EXCEED_REFUSE;
	return 0;
}

/* The session is found by the first of key, thread and user that is given. */
static int parse_key(struct api_call *c, const json_t *b, struct store_binding *ret,
		     struct err *err)
{
	static const char *const kinds[] = { "key", "thread", "user" };

	for (size_t i = 0; i < ARRAY_LEN(kinds) && !*ret->key; i++) {
		if (api_copy(b, kinds[i], ret->key, sizeof(ret->key), err) < 0)
			return -1;
		snprintf(ret->kind, sizeof(ret->kind), "%s", kinds[i]);
	}
	if (!*ret->key)
		snprintf(ret->key, sizeof(ret->key), "%s", c->user);
	if (!*ret->key)
		*ret->kind = '\0';
	return 0;
}

int v1_session_id(struct api_call *c, const char *name, const char **ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_tombstone t;
	struct session_ref ref;

	if (!*name)
		return err_set(err, ERR_INVALID, "session: empty");
	if (api_ref(c, name, &ref, err) < 0)
		return -1;
	if (ref.id && !session_ref_is_sandbox(&ref)) {
		*ret = ref.id;
		return 0;
	}
	if (session_get(c->engine, &c->caller, &ref, &s, err) == 0)
		ref.id = arena_text(c->arena, s.id, strlen(s.id));
	else if (err->sys == ESTALE && session_tombstone(c->engine, &c->caller, &ref, &t, err) == 0)
		ref.id = arena_text(c->arena, t.session, strlen(t.session));
	else
		return -1;
	*ret = ref.id;
	return ref.id ? 0 : err_sys(err, ENOMEM, "session");
}

int v1_snapshot(struct api_call *c, const char *id, struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s;
	struct err unseen;

	if (snapshot_get(c->engine, &c->caller, id, &s, err) < 0)
		return -1;
	if (api_may_see(c, s.session, &unseen) < 0)
		return err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", id);
	*ret = s;
	return 0;
}

int v1_check_token(struct api_call *c, const struct store_binding *key,
		   const struct session_opts *w, struct err *err)
{
	struct session_ref by = { .kind = key->kind, .key = key->key }, ref;
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_snapshot snap;
	struct err ignored;

	if (*c->session)
		return err_set(err, ERR_DENIED, "this token is for one session only");
	if (!*c->user)
		return 0;
	if (strcmp(w->user, c->user) != 0)
		return err_set(err, ERR_DENIED, "user: this token is for another user");
	if (w->pin && api_ref(c, w->pin, &ref, err) < 0)
		return -1;
	if (w->snapshot && v1_snapshot(c, w->snapshot, &snap, err) < 0)
		return -1;
	if (*key->kind && session_get(c->engine, &c->caller, &by, &s, &ignored) == 0 &&
	    strcmp(s.user, c->user) != 0)
		return err_set(err, ERR_CONFLICT, "%s: belongs to a session of another user",
			       key->kind);
	return 0;
}

/* A root user in the sandbox reaches more kernel code, so only tenant keys and templates may choose
 * it. */
static int check_class(struct api_call *c, const struct session_opts *w, struct err *err)
{
	auto_fini(template_fini) struct template t;
	struct err ignored;

	template_init(&t);
	if (w->overrides->class != KEEPER_CLASS_ROOT || c->scope >= API_TENANT)
		return 0;
	if (template_load(engine_home(c->engine), w->template ? w->template : "host", &t,
			  &ignored) == 0 &&
	    t.class == KEEPER_CLASS_ROOT)
		return 0;
	return err_set(err, ERR_DENIED, "class: \"root\" requires a key with scope \"tenant\"");
}

int v1_reply_entered(struct api_call *c, const struct session_enter_result *how, struct err *err)
{
	static const char *const sources[] = { NULL, "pool", "cold", "resume", "fork" };
	bool made = how->outcome == SESSION_CREATED || how->outcome == SESSION_REPLACED;
	char ms[32];
	struct json_out j;

	http_set_header(c->rq, "Lodge-Outcome", api_outcome_name(how->outcome));
	snprintf(ms, sizeof(ms), "%llu.%03llu", (unsigned long long)how->ready_us / 1000,
		 (unsigned long long)how->ready_us % 1000);
	api_object(&j);
	api_put_session(c, &j, "session", &how->session);
	json_out_str(&j, "outcome", api_outcome_name(how->outcome));
	json_out_bool(&j, "state_lost", how->state_lost);
	api_put_cause(&j, "cause", &how->cause);
	json_out_raw(&j, "ready_ms", ms, strlen(ms));
	json_out_str(&j, "source", sources[how->source]);
	api_put_fields(&j, "ignored", &how->ignored);
	return api_reply(c, made ? 201 : 200, &j, err);
}

static int enter(struct api_call *c, const struct session_opts *w, struct err *err)
{
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	int64_t began_us = clock_mono_us();

	if (session_enter(c->engine, &c->caller, w, &how, err) < 0)
		return -1;
	histogram_add(&c->api->entered[how.outcome], (uint64_t)(clock_mono_us() - began_us));
	/* a session without an owner that the key matches only since the check */
	if (*c->user && strcmp(how.session.user, c->user) != 0)
		return err_set(err, ERR_CONFLICT, "key: belongs to a session of another user");
	return v1_reply_entered(c, &how, err);
}

int v1_enter_session(struct api_call *c, struct err *err)
{
	auto_fini(template_fini) struct template over;
	struct store_binding key = { 0 };
	struct session_opts w = { .keys = &key, .overrides = &over };
	json_t *b;

	template_init(&over);
	if (api_body(c, enter_fields, &b, err) < 0 || check_network(b, err) < 0 ||
	    parse_names(b, &w, err) < 0 || parse_numbers(b, &w, err) < 0 ||
	    parse_metadata(c, b, &w.metadata, err) < 0 || api_take_spec(b, &over, err) < 0)
		return -1;
	if (w.policy && c->scope < API_TENANT)
		return err_set(err, ERR_DENIED, "policy: requires a key with scope \"tenant\"");
	if (*c->user && !w.user)
		w.user = c->user;
	if (parse_key(c, b, &key, err) < 0 || check_class(c, &w, err) < 0 ||
	    v1_check_token(c, &key, &w, err) < 0)
		return -1;
	w.nkeys = *key.kind != '\0';
	return enter(c, &w, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

int v1_reply_session(struct api_call *c, unsigned status, struct store_session *s, struct err *err)
{
	struct json_out j;

	api_object(&j);
	api_put_session(c, &j, "session", s);
	store_session_fini(s);
	return api_reply(c, status, &j, err);
}

struct filter {
	struct store_session_filter by;
	bool rows; /* view=row, which has more parameters */
	struct err *err;
};

/* "active,hibernated" */
static int parse_states(const char *value, uint64_t *ret, struct err *err)
{
	for (const char *p = value, *end; p; p = *end ? end + 1 : NULL) {
		char name[STORE_WORD];
		int state;

		end = strchrnul(p, ',');
		snprintf(name, sizeof(name), "%.*s", (int)(end - p), p);
		state = end - p < (ptrdiff_t)sizeof(name)
				? state_machine_find(&session_states, name)
				: -1;
		if (state < 0)
			return err_set(err, ERR_INVALID, "state: unknown state \"%.*s\"",
				       (int)(end - p < 32 ? end - p : 32), p);
		*ret |= SM_BIT(state);
	}
	return 0;
}

static int parse_filter(void *arg, const char *name, const char *value)
{
	static const char meta[] = "metadata.";
	struct filter *f = arg;

	if (api_has_name("limit after view tenant all", name) ||
	    (f->rows && v1_is_row_option(name)))
		return 0;
	if (v1_is_row_option(name))
		return err_set(f->err, ERR_INVALID, "%s: only with view=row", name);
	if (!*value)
		return err_set(f->err, ERR_INVALID, "%.40s: empty", name);
	if (strcmp(name, "state") == 0)
		return parse_states(value, &f->by.states, f->err);
	if (strcmp(name, "user") == 0)
		f->by.user = value;
	else if (strcmp(name, "project") == 0)
		f->by.project = value;
	else if (strncmp(name, meta, sizeof(meta) - 1) == 0 && name[sizeof(meta) - 1] &&
		 !f->by.meta_key) {
		f->by.meta_key = name + sizeof(meta) - 1;
		f->by.meta_value = value;
	} else
		return f->by.meta_key && strncmp(name, meta, sizeof(meta) - 1) == 0
			       ? err_set(f->err, ERR_INVALID, "%.64s: only one metadata filter",
					 name)
			       : api_query_unknown(name, f->err);
	return 0;
}

static int reply_list(struct api_call *c, const struct store_session_list *l, struct err *err)
{
	struct json_out j;

	api_list(&j, "sessions");
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].state != SESSION_DESTROYING)
			api_put_session(c, &j, NULL, &l->items[i]);
	api_list_end(&j, l->next);
	return api_reply(c, 200, &j, err);
}

static int parse_tenants(struct api_call *c, const char **ret, struct err *err)
{
	if (api_query_tenant(c, ret, err) < 0)
		return -1;
	if (!api_query_flag(c, "all"))
		return 0;
	if (c->scope != API_ADMIN)
		return err_set(err, ERR_DENIED, "all: requires a key with scope \"admin\"");
	if (http_query(c->rq, "tenant"))
		return err_set(err, ERR_INVALID, "all: not together with tenant");
	*ret = NULL;
	return 0;
}

/* The list visible to a session token. */
static int list_one(struct api_call *c, struct err *err)
{
	struct session_ref ref = { .id = c->session };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_session_list l = { .items = &s, .count = 1 };

	if (session_get(c->engine, &c->caller, &ref, &s, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		l.count = 0;
	}
	return reply_list(c, &l, err);
}

int v1_list_sessions(struct api_call *c, struct err *err)
{
	const char *view = http_query(c->rq, "view");
	struct filter f = { .rows = view, .err = err };
	auto_fini(store_session_list_fini) struct store_session_list l = { 0 };
	struct store_page page;

	if (view && strcmp(view, "row") != 0)
		return err_set(err, ERR_INVALID, "view: must be \"row\"");
	if (parse_tenants(c, &f.by.tenant, err) < 0 || (!view && api_page(c, &page, err) < 0) ||
	    http_query_each(c->rq, parse_filter, &f) != 0)
		return -1;
	if (!view && *c->session)
		return list_one(c, err);
	if (*c->user && f.by.user && strcmp(f.by.user, c->user) != 0)
		return err_set(err, ERR_DENIED, "user: this token is for another user");
	if (*c->user)
		f.by.user = c->user;
	if (view)
		return v1_list_rows(c, &f.by, err);
	if (session_list(c->engine, &f.by, page, &l, err) < 0)
		return -1;
	return reply_list(c, &l, err);
}

int v1_get_session(struct api_call *c, struct err *err)
{
	struct store_session s = { 0 };

	return api_session(c, &s, err) < 0 ? -1 : v1_reply_session(c, 200, &s, err);
}

/* ---- update ---------------------------------------------------------------------------------- */

struct change {
	struct session_patch patch;
	int64_t idle, lifetime, max_lifetime, keep;
	enum session_end on_idle, on_expire;
	bool any, has_archived, archived;
};

static int parse_change(struct api_call *c, const json_t *b, const struct template *limits,
			struct change *p, struct err *err)
{
	struct session_patch *to = &p->patch;

	if (api_int(b, "idle_timeout_ms", 1, INT64_MAX, &p->idle, err) < 0 ||
	    api_int(b, "lifetime_ms", 1, INT64_MAX, &p->lifetime, err) < 0 ||
	    api_int(b, "max_lifetime_ms", 1, INT64_MAX, &p->max_lifetime, err) < 0 ||
	    api_int(b, "delete_after_ms", 0, SESSION_TIME_MAX_MS, &p->keep, err) < 0 ||
	    api_int(b, "if_version", 1, INT64_MAX, &to->if_version, err) < 0 ||
	    parse_end(b, "on_idle", &p->on_idle, err) < 0 ||
	    parse_end(b, "on_expire", &p->on_expire, err) < 0 ||
	    parse_metadata(c, b, &to->metadata, err) < 0 ||
	    api_bool(b, "archived", &p->archived, err) < 0)
		return -1;
	to->idle_timeout_ms = api_member(b, "idle_timeout_ms") ? &p->idle : NULL;
	to->lifetime_ms = api_member(b, "lifetime_ms") ? &p->lifetime : NULL;
	to->max_lifetime_ms = api_member(b, "max_lifetime_ms") ? &p->max_lifetime : NULL;
	to->delete_after_ms = api_member(b, "delete_after_ms") ? &p->keep : NULL;
	to->on_idle = api_member(b, "on_idle") ? &p->on_idle : NULL;
	to->on_expire = api_member(b, "on_expire") ? &p->on_expire : NULL;
	to->limits = api_member(b, "limits") ? limits : NULL;
	to->lower_only = *c->session != '\0';
	p->has_archived = api_member(b, "archived");
	p->any = to->idle_timeout_ms || to->lifetime_ms || to->max_lifetime_ms ||
		 to->delete_after_ms || to->on_idle || to->on_expire || to->limits || to->metadata;
	return 0;
}

/* Updates settings first, so they apply when the session hibernates. */
static int apply_change(struct api_call *c, const struct session_ref *ref, const struct change *p,
			struct session_fields *adjusted, struct store_session *ret, struct err *err)
{
	int64_t version = p->patch.if_version;
	v1_move_fn *move = p->archived ? session_archive : session_unarchive;

	if (p->any || !p->has_archived) {
		if (session_change(c->engine, &c->caller, ref, &p->patch, adjusted, ret, err) < 0)
			return -1;
		if (version)
			version = ret->version;
	}
	if (!p->has_archived)
		return 0;
	store_session_fini(ret);
	*ret = (struct store_session){ 0 };
	return move(c->engine, &c->caller, ref, version, ret, err);
}

int v1_update_session(struct api_call *c, struct err *err)
{
	auto_fini(template_fini) struct template limits;
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_fields adjusted = { 0 };
	struct change p = { 0 };
	struct session_ref ref;
	struct json_out j;
	json_t *b;

	template_init(&limits);
	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    api_body(c,
		     "idle_timeout_ms lifetime_ms max_lifetime_ms delete_after_ms on_idle "
		     "on_expire limits metadata archived if_version",
		     &b, err) < 0 ||
	    api_take_spec(b, &limits, err) < 0 || parse_change(c, b, &limits, &p, err) < 0 ||
	    apply_change(c, &ref, &p, &adjusted, &s, err) < 0)
		return -1;
	api_object(&j);
	api_put_session(c, &j, "session", &s);
	api_put_fields(&j, "adjusted", &adjusted);
	return api_reply(c, 200, &j, err);
}

int v1_delete_session(struct api_call *c, struct err *err)
{
	const char *reason = http_query(c->rq, "reason");
	struct session_cause_opts why = { .cause = SESSION_CAUSE_REQUESTED,
					  .text = reason ? reason : "",
					  .actor = c->caller.actor };
	struct store_tombstone t;
	struct session_ref ref;
	int64_t version = 0;
	struct json_out j;

	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    api_query_int(c, "if_version", 1, INT64_MAX, &version, err) < 0 ||
	    session_destroy_version(c->engine, &c->caller, &ref, version, &why, &t, err) < 0)
		return -1;
	api_object(&j);
	json_out_object(&j, "tombstone");
	json_out_str(&j, "session", t.session);
	json_out_text(&j, "user", t.user);
	json_out_i64(&j, "created_at", t.created_at);
	api_put_cause(&j, "cause", &t.cause);
	return api_reply(c, 200, &j, err);
}

const struct api_surface v1_surface = { .routes = API_TABLE(V1_ROUTES),
					.put_error = api_put_error,
					.strict_query = true };
