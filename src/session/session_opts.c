/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session_opts.h"
#include "layers/layers.h"
#include "session/reconcile.h"
#include "session/session_times.h"
#include "sandbox/template/template_json.h"
#include "base/array.h"
#include "layers/snapshot_record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DEFINE_AUTO(json_t *, json_decref);

/* ---- checking -------------------------------------------------------------------------------- */

static int check_text(const char *field, const char *text, size_t size, struct err *err)
{
	if (!text)
		return 0;
	if (!*text)
		return err_set(err, ERR_INVALID, "%s: empty", field);
	if (strlen(text) >= size)
		return err_set(err, ERR_INVALID, "%s: longer than %zu bytes", field, size - 1);
	return 0;
}

static int check_keys(const struct session_opts *w, struct err *err)
{
	if (w->nkeys > STORE_BINDINGS_MAX)
		return err_set(err, ERR_INVALID, "keys: more than %d", STORE_BINDINGS_MAX);
	for (size_t i = 0; i < w->nkeys; i++)
		if (!*w->keys[i].kind || !*w->keys[i].key)
			return err_set(err, ERR_INVALID, "%s: empty",
				       *w->keys[i].kind ? w->keys[i].kind : "key");
	return 0;
}

int session_metadata_check(const char *text, struct err *err)
{
	json_error_t why;
	auto_call(json_decref) json_t *j = NULL;

	if (!text)
		return 0;
	if (strlen(text) > STORE_JSON_MAX)
		return err_set(err, ERR_INVALID, "metadata: more than %d bytes", STORE_JSON_MAX);
	j = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		return err_set(err, ERR_INVALID, "metadata: %s", why.text);
	if (!json_is_object(j))
		return err_set(err, ERR_INVALID, "metadata: not an object");
	return 0;
}

int session_output_check(const struct template *own, uint64_t memory_bytes, struct err *err)
{
	struct limits l = { .memory_bytes = memory_bytes };

	if (!own || !template_has_limit(own, "output_bytes"))
		return 0;
	l.output_bytes = own->limits.output_bytes;
	return limits_check_output(&l, "limits.", err);
}

/* As they are before any policy. */
static int check_limits(struct engine *e, const struct session_opts *w, const char *template,
			struct template *merged, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();

	if (template_load(e->home, template, merged, err) < 0)
		return err_ctx(err, "template");
	if ((w->overrides && template_merge(merged, w->overrides, err) < 0) ||
	    template_apply(merged, &spec, err) < 0)
		return -1;
	return limits_check(&spec.limits, "limits.", err) < 0
		       ? -1
		       : session_output_check(w->overrides, spec.limits.memory_bytes, err);
}

static int check_times(const struct session_opts *w, struct err *err)
{
	enum session_field bad = w->idle_timeout_ms < 0		     ? SESSION_FIELD_IDLE
				 : w->lifetime_ms < 0		     ? SESSION_FIELD_LIFETIME
				 : w->max_lifetime_ms < 0	     ? SESSION_FIELD_MAX_LIFETIME
				 : w->delete_after_ms < SESSION_KEEP ? SESSION_FIELD_DELETE_AFTER
								     : SESSION_FIELDS;

	return bad == SESSION_FIELDS ? 0
				     : err_set(err, ERR_INVALID, "%s: must not be negative",
					       session_field_name(bad));
}

int session_opts_check(struct engine *e, const struct caller *caller, const struct session_opts *w,
		       struct err *err)
{
	const struct {
		const char *field, *text;
		size_t size;
	} texts[] = {
		{ "user", w->user, STORE_USER },
		{ "template", w->template, STORE_ID },
		{ "policy", w->policy, STORE_NAME },
		{ "snapshot", w->snapshot, STORE_ID },
		{ "project", w->project, STORE_ID },
		{ "fragment", w->fragment, STORE_ID },
		{ "pin", w->pin, STORE_ID },
		{ "idempotency_key", w->idempotency_key, STORE_KEY },
	};
	auto_fini(template_fini) struct template merged;

	template_init(&merged);
	if (!caller->tenant || !*caller->tenant || strlen(caller->tenant) >= STORE_NAME)
		return err_set(err, ERR_INVALID, "tenant: missing or too long");
	if (check_keys(w, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (check_text(texts[i].field, texts[i].text, texts[i].size, err) < 0)
			return -1;
	if (check_times(w, err) < 0 || session_metadata_check(w->metadata, err) < 0)
		return -1;
	return check_limits(e, w, w->template ? w->template : "host", &merged, err);
}

/* ---- the record ------------------------------------------------------------------------------ */

static int set_times(struct engine *e, const struct session_opts *w, const struct store_policy *p,
		     struct session_fields *adjusted, struct store_session *s, struct err *err)
{
	int64_t keep = w->delete_after_ms == SESSION_KEEP ? 0 : w->delete_after_ms;
	struct session_times t = {
		.idle_timeout_ms = w->idle_timeout_ms ? &w->idle_timeout_ms : NULL,
		.lifetime_ms = w->lifetime_ms ? &w->lifetime_ms : NULL,
		.max_lifetime_ms = w->max_lifetime_ms ? &w->max_lifetime_ms : NULL,
		.delete_after_ms = w->delete_after_ms ? &keep : NULL,
	};

	session_times_default(e, p, w->default_lifetime_ms, s);
	if (session_times_apply(e, p, &t, w->adjust ? adjusted : NULL, s, err) < 0)
		return -1;
	if (s->lifetime_ms > s->max_lifetime_ms) /* a default */
		s->lifetime_ms = s->max_lifetime_ms;
	return 0;
}

static int copy_owned(const struct session_opts *w, struct store_session *s, struct err *err)
{
	s->metadata = w->metadata ? strdup(w->metadata) : NULL;
	s->bindings = w->nkeys ? calloc(w->nkeys, sizeof(*s->bindings)) : NULL;
	if ((w->metadata && !s->metadata) || (w->nkeys && !s->bindings))
		return err_sys(err, ENOMEM, "session");
	if (w->nkeys)
		memcpy(s->bindings, w->keys, w->nkeys * sizeof(*w->keys));
	s->nbindings = w->nkeys;
	return 0;
}

static void holder_name(const char *id, char ret[STORE_KEY])
{
	snprintf(ret, STORE_KEY, "fork:%s", id);
}

void session_opts_release(struct engine *e, const char *id, const char *layer)
{
	char holder[STORE_KEY];

	if (!*layer)
		return;
	holder_name(id, holder);
	layers_release(e, layer, holder);
}

static int get_layer(struct engine *e, const char *id, struct store_layer *ret, struct err *err)
{
	return STORE_CALL(e, store_layer_get, id, ret, err);
}

int session_opts_template(struct engine *e, const struct caller *caller,
			  const struct session_opts *w, char ret[STORE_ID], struct err *err)
{
	struct store_layer layer = { .template = "host" };
	struct store_snapshot snap;

	if (!w->template && w->snapshot &&
	    (snapshot_get(e, caller, w->snapshot, &snap, err) < 0 ||
	     get_layer(e, snap.layer, &layer, err) < 0))
		return -1;
	snprintf(ret, STORE_ID, "%s", w->template ? w->template : layer.template);
	return 0;
}

/* The record names files that are there. They are held from here on. */
static void set_layer(struct store_session *s, const char *layer)
{
	snprintf(s->layer, sizeof(s->layer), "%s", layer);
	s->state = SESSION_HIBERNATED;
	s->runtime = SESSION_RUNTIME_RESUMABLE;
	s->generation = 1;
	s->hibernated_at = s->created_at;
}

/* From a snapshot: its files, on the template they were made on, or on one that lies on the same.
 */
static int set_snapshot(struct engine *e, const struct caller *caller, const struct session_opts *w,
			const char *layer_of_template, struct store_session *s, struct err *err)
{
	char holder[STORE_KEY];
	struct store_layer layer, below = { 0 };
	struct store_snapshot snap;

	holder_name(s->id, holder);
	if (snapshot_hold(e, caller, w->snapshot, holder, &snap, err) < 0)
		return -1;
	set_layer(s, snap.layer);
	memcpy(s->snapshot, snap.id, sizeof(s->snapshot));
	if (get_layer(e, snap.layer, &layer, err) < 0)
		return -1;
	snprintf(below.template, sizeof(below.template), "%s", s->template);
	if (layer_of_template && get_layer(e, layer_of_template, &below, err) < 0)
		return -1;
	if (strcmp(below.template, layer.template) != 0)
		return err_set(err, ERR_INVALID, "template: the snapshot was made on '%s'",
			       layer.template);
	return 0;
}

static int set_files(struct engine *e, const struct caller *caller, const struct session_opts *w,
		     const struct template *t, struct store_session *s, struct err *err)
{
	char holder[STORE_KEY];

	if (w->snapshot)
		return set_snapshot(e, caller, w, t->layer, s, err);
	if (!t->layer)
		return 0;
	holder_name(s->id, holder);
	if (layers_hold(e, t->layer, holder, err) < 0)
		return err_ctx(err, "template %s", s->template);
	set_layer(s, t->layer);
	return 0;
}

static int set_spec(struct engine *e, const struct caller *caller, const struct session_opts *w,
		    const struct policy_rules *rules, struct store_session *s, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	auto_fini(template_fini) struct template merged;
	struct enforcement f;

	template_init(&merged);
	keeper_conn_enforcement(e, &f);
	if (session_opts_template(e, caller, w, s->template, err) < 0 ||
	    check_limits(e, w, s->template, &merged, err) < 0 ||
	    enforcement_check(&f, KEEPER_STORE_DISK, merged.demand, err) < 0 ||
	    policy_rules_cap(e, rules, &merged, err) < 0 || template_apply(&merged, &spec, err) < 0)
		return -1;
	s->memory_bytes = (int64_t)spec.limits.memory_bytes;
	s->disk_bytes = (int64_t)spec.limits.disk_bytes;
	if (w->overrides && template_print(w->overrides, &s->spec, err) < 0)
		return -1;
	return set_files(e, caller, w, &merged, s, err);
}

int session_opts_to_record(struct engine *e, const struct caller *caller,
			   const struct session_opts *w, const struct policy_rules *rules,
			   const char *id, struct session_fields *adjusted,
			   struct store_session *ret, struct err *err)
{
	struct store_session s = { .state = SESSION_NONE, .created_at = engine_now(e) };

	snprintf(s.id, sizeof(s.id), "%s", id);
	snprintf(s.tenant, sizeof(s.tenant), "%s", caller->tenant);
	snprintf(s.user, sizeof(s.user), "%s", w->user ? w->user : "");
	memcpy(s.policy, rules->policy.name, sizeof(s.policy));
	snprintf(s.project, sizeof(s.project), "%s", w->project ? w->project : "");
	snprintf(s.fragment, sizeof(s.fragment), "%s", w->fragment ? w->fragment : "");
	s.on_idle = (uint8_t)w->on_idle;
	s.on_expire = (uint8_t)w->on_expire;
	if (set_times(e, w, &rules->policy, adjusted, &s, err) < 0 ||
	    set_spec(e, caller, w, rules, &s, err) < 0 || copy_owned(w, &s, err) < 0) {
		session_opts_release(e, id, s.layer);
		store_session_fini(&s);
		return -1;
	}
	s.due_at = session_delete_at(&s); /* unless it is started now */
	*ret = s;
	return 0;
}

/* ---- rules ------------------------------------------------------------------------------------
 */

/* The session that the call leads to, as it is now; false: a new one, as far as one can see. */
static bool find_requested(struct engine *e, const struct caller *caller,
			   const struct session_opts *w, struct store_session *ret)
{
	struct session_ref pin = { .id = w->pin };
	struct err ignored;

	for (size_t i = 0; i < w->nkeys; i++) {
		struct session_ref ref = { .kind = w->keys[i].kind, .key = w->keys[i].key };

		if (session_get(e, caller, &ref, ret, &ignored) == 0)
			return true;
	}
	return !w->nkeys && w->pin && session_get(e, caller, &pin, ret, &ignored) == 0;
}

static int template_policy(struct engine *e, const struct caller *caller,
			   const struct session_opts *w, char ret[STORE_NAME], struct err *err)
{
	auto_fini(template_fini) struct template t;
	char name[STORE_ID];

	template_init(&t);
	if (session_opts_template(e, caller, w, name, err) < 0 ||
	    template_load(e->home, name, &t, err) < 0)
		return -1;
	if (t.policy && strlen(t.policy) >= STORE_NAME)
		return err_set(err, ERR_INVALID, "template \"%s\": its policy has no name", name);
	snprintf(ret, STORE_NAME, "%s", t.policy ? t.policy : "");
	return 0;
}

/* The smaller number counts; what becomes of one too many is the policy's to say. */
static void limit_active(struct session_opts *w, const struct store_policy *p)
{
	if (!p->max_active_per_user)
		return;
	if (!w->max_active_per_user || w->max_active_per_user > p->max_active_per_user)
		w->max_active_per_user = (unsigned)p->max_active_per_user;
	w->on_exceed = (enum session_exceed_action)p->on_exceed;
}

static int apply_policy(struct engine *e, const struct session_opts *w,
			const struct policy_rules *r, struct err *err)
{
	const struct store_policy *p = &r->policy;

	if (p->max_active_per_user && !w->user)
		return err_set(err, ERR_INVALID,
			       "user: required, because policy \"%s\" limits sessions per user",
			       p->name);
	return policy_rules_check(e, r, w->overrides, err);
}

/* One of this name is for all sessions of its tenant that are under no other. */
static int tenant_policy(struct engine *e, const struct caller *caller, char name[STORE_NAME],
			 struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };

	if (policy_get(e, caller->tenant, POLICY_DEFAULT_NAME, &p, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	memcpy(name, p.name, STORE_NAME);
	return 0;
}

int session_opts_rules(struct engine *e, const struct caller *caller, struct session_opts *w,
		       char user[STORE_USER], struct policy_rules *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	bool there = find_requested(e, caller, w, &s);
	char name[STORE_NAME] = "";

	if (there)
		snprintf(name, sizeof(name), "%s", s.policy);
	else if (w->policy)
		snprintf(name, sizeof(name), "%s", w->policy);
	else if (!w->no_policy && (template_policy(e, caller, w, name, err) < 0 ||
				   (!*name && tenant_policy(e, caller, name, err) < 0)))
		return -1;
	if (policy_rules_load(e, caller->tenant, name, ret, err) < 0)
		return err_ctx(err, "%s", !there && !w->policy ? "template" : "policy");
	if (there && !w->user && *s.user && ret->policy.max_active_per_user) {
		snprintf(user, STORE_USER, "%s", s.user);
		w->user = user;
	}
	limit_active(w, &ret->policy);
	return there ? 0 : apply_policy(e, w, ret, err);
}
