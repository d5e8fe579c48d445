/* SPDX-License-Identifier: Apache-2.0 */
/* A template exists if its template.json exists: files are written before it and deleted after it.
 * A mark beside it records a change in progress for the next startup. A template from a snapshot
 * has no files of its own: it holds the snapshot's layer. */
#include "template/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "template/environment.h"
#include "admit/api_key.h"
#include "admit/limits_max.h"
#include "layers/layers.h"
#include "admit/policy_rules.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/name_lock.h"
#include "sandbox/template/template_json.h"
#include "layers/snapshot_record.h"
#include "session/session_api.h"
#include "engine/audit.h"

#define HOLDER "template:"

static void make_holder(const char *name, char ret[STORE_KEY])
{
	snprintf(ret, STORE_KEY, HOLDER "%s", name);
}

void template_audit(struct engine *e, const char *actor, const char *name, const char *what)
{
	char text[STORE_TEXT];
	struct err ignored;

	snprintf(text, sizeof(text), "template %s was %s", name, what);
	(void)audit_write(e, "", "template", actor, text, &ignored);
}

/* ---- reading ----------------------------------------------------------------------------- */

static int not_found(const char *name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no template \"%.64s\"", name);
}

int template_load_existing(struct engine *e, const char *name, struct template *ret,
			   struct err *err)
{
	template_init(ret);
	if (!template_name_is_valid(name))
		return not_found(name, err);
	if (template_load(e->home, name, ret, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND ? not_found(name, err) : -1;
}

static int check_not_builtin(const char *name, struct err *err)
{
	if (!template_name_is_valid(name))
		return not_found(name, err);
	if (template_is_builtin(name))
		return err_set(err, ERR_CONFLICT, "template \"%s\" is built in", name);
	return 0;
}

static int count_sessions(struct engine *e, const char *name, int64_t *ret, struct err *err)
{
	struct store_session_filter f = { .template = name };

	return STORE_CALL(e, store_session_count, &f, ret, err);
}

static int64_t count_bytes(struct engine *e, const struct template *t)
{
	struct store_layer l = { 0 };
	struct err ignored;

	if (!t->layer)
		return (int64_t)t->made.bytes;
	return STORE_CALL(e, store_layer_get, t->layer, &l, &ignored) < 0 ? 0 : l.bytes;
}

int template_info(struct engine *e, const char *name, struct template_info *ret, struct err *err)
{
	struct template_info i = { .builtin = template_is_builtin(name) };
	struct err why;

	if (!template_name_is_valid(name))
		return not_found(name, err);
	snprintf(i.name, sizeof(i.name), "%s", name);
	if (template_load(e->home, name, &i.t, &why) < 0) {
		template_fini(&i.t);
		if (why.code == ERR_NOT_FOUND)
			return not_found(name, err);
		snprintf(i.problem, sizeof(i.problem), "%s", why.msg);
	}
	i.bytes = count_bytes(e, &i.t);
	if (count_sessions(e, name, &i.sessions, err) < 0) {
		template_fini(&i.t);
		return -1;
	}
	*ret = i;
	return 0;
}

void template_info_fini(struct template_info *i)
{
	template_fini(&i->t);
}

struct listing {
	struct engine *engine;
	template_info_fn *fn;
	void *arg;
	struct err *err;
};

/* Skips a template that was deleted meanwhile. */
static int list_one(void *arg, const char *name)
{
	struct listing *l = arg;
	struct template_info i;
	int r;

	if (template_info(l->engine, name, &i, l->err) < 0)
		return l->err->code == ERR_NOT_FOUND ? 0 : -1;
	r = l->fn(l->arg, &i);
	template_info_fini(&i);
	return r;
}

int template_list(struct engine *e, template_info_fn *fn, void *arg, struct err *err)
{
	struct listing l = { .engine = e, .fn = fn, .arg = arg, .err = err };
	int r = list_one(&l, "host");

	if (r == 0)
		r = list_one(&l, "empty");
	return r ? r : template_each(e->home, list_one, &l, err);
}

/* ---- checking ---------------------------------------------------------------------------- */

int template_check_new(struct engine *e, const char *name, struct err *err)
{
	struct template t;
	int r;

	if (!template_name_is_valid(name))
		return err_set(err, ERR_INVALID,
			       "name: \"%.64s\" is invalid; use a-z, 0-9, '.', '_' and '-'", name);
	if (template_is_builtin(name))
		return err_set(err, ERR_CONFLICT, "template \"%s\" is built in", name);
	r = template_load(e->home, name, &t, err);
	template_fini(&t);
	if (r == 0 || err->code != ERR_NOT_FOUND)
		return err_set(err, ERR_CONFLICT, "template \"%s\" already exists", name);
	return 0;
}

static int check_policy(struct engine *e, const char *tenant, const char *name, struct err *err)
{
	struct store_policy p = { 0 };

	if (!name)
		return 0;
	if (policy_get(e, tenant, name, &p, err) < 0)
		return -1;
	store_policy_fini(&p);
	return 0;
}

static int check_settings(struct engine *e, const char *tenant, const struct template *t,
			  struct err *err)
{
	uint32_t uid = 1, gid = 1;

	if (t->user && (!*t->user || template_parse_user(t->user, &uid, &gid, err) < 0))
		return err_set(err, ERR_INVALID, "run_as: not a valid user");
	if ((!uid || !gid) && t->class != KEEPER_CLASS_ROOT)
		return err_set(err, ERR_INVALID, "run_as: root requires class \"root\"");
	if (t->workdir && t->workdir[0] != '/')
		return err_set(err, ERR_INVALID, "workdir: must be an absolute path");
	return check_policy(e, tenant, t->policy, err);
}

/* ---- from a snapshot --------------------------------------------------------------------- */

/* Loads the template that the snapshot's session used. */
static int load_origin(struct engine *e, const struct caller *caller,
		       const struct store_snapshot *snap, struct template *ret, struct err *err)
{
	struct session_ref ref = { .id = snap->session };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_layer l;

	if (STORE_CALL(e, store_layer_get, snap->layer, &l, err) < 0)
		return -1;
	if (*snap->session && session_get(e, caller, &ref, &s, err) == 0)
		memcpy(l.template, s.template, sizeof(l.template));
	return template_load(e->home, l.template, ret, err);
}

static int set_text(char **field, const char *text, struct err *err)
{
	char *copy = strdup(text);

	if (!copy)
		return err_sys(err, ENOMEM, "template");
	free(*field);
	*field = copy;
	return 0;
}

static int make_settings(struct engine *e, const struct caller *caller,
			 const struct store_snapshot *snap, const struct template *over,
			 struct template *ret, struct err *err)
{
	if (load_origin(e, caller, snap, ret, err) < 0 || template_merge(ret, over, err) < 0 ||
	    check_settings(e, caller->tenant, ret, err) < 0)
		return -1;
	ret->made.at = engine_now(e);
	ret->made.bytes = 0;
	if (set_text(&ret->made.from, "snapshot", err) < 0 ||
	    set_text(&ret->made.snapshot, snap->id, err) < 0 ||
	    set_text(&ret->layer, snap->layer, err) < 0)
		return -1;
	return 0;
}

static int promote_locked(struct engine *e, const struct caller *caller, const char *name,
			  const char *snapshot, const struct template *over, struct err *err)
{
	char holder[STORE_KEY];
	auto_fini(template_fini) struct template t;
	struct store_snapshot snap;

	template_init(&t);
	make_holder(name, holder);
	if (template_check_new(e, name, err) < 0 || limits_max_check(e, over, err) < 0 ||
	    snapshot_hold(e, caller, snapshot, holder, &snap, err) < 0)
		return -1;
	hook_crash("promote:held");
	if (make_settings(e, caller, &snap, over, &t, err) == 0 &&
	    template_save(e->home, name, &t, err) == 0)
		return 0;
	layers_release(e, snap.layer, holder);
	return -1;
}

int template_promote(struct engine *e, const struct caller *caller, const char *name,
		     const char *snapshot, const struct template *over, struct err *err)
{
	struct name_lock lock;
	int r;

	name_lock(e, &lock, TEMPLATES_LOCK, NULL, "");
	r = promote_locked(e, caller, name, snapshot, over, err);
	name_unlock(&lock);
	if (r == 0)
		template_audit(e, caller->actor, name, "created from a snapshot");
	return r;
}

/* ---- changing ---------------------------------------------------------------------------- */

/* Limits from before a maximum was lowered stay: they are lowered for each sandbox. */
static int check_new_limits(struct engine *e, const struct template *was, const struct template *t,
			    struct err *err)
{
	bool same = was->limits_set == t->limits_set;

	for (unsigned i = 0; same && template_limit_name(i); i++)
		same = template_limit_value(was, i) == template_limit_value(t, i);
	return same ? 0 : limits_max_check(e, t, err);
}

static int change_locked(struct engine *e, const struct caller *caller, const char *name,
			 template_edit_fn *edit, void *arg, struct err *err)
{
	auto_fini(template_fini) struct template t;
	struct template was;

	if (template_load_existing(e, name, &t, err) < 0)
		return -1;
	was = (struct template){ .limits = t.limits, .limits_set = t.limits_set };
	if (edit(arg, &t, err) < 0 || check_settings(e, caller->tenant, &t, err) < 0 ||
	    check_new_limits(e, &was, &t, err) < 0)
		return -1;
	return template_save(e->home, name, &t, err);
}

int template_change(struct engine *e, const struct caller *caller, const char *name,
		    template_edit_fn *edit, void *arg, struct err *err)
{
	struct name_lock lock;
	int r;

	if (check_not_builtin(name, err) < 0)
		return -1;
	name_lock(e, &lock, TEMPLATES_LOCK, NULL, "");
	r = change_locked(e, caller, name, edit, arg, err);
	name_unlock(&lock);
	if (r == 0) {
		environment_request_add(e, name, true);
		template_audit(e, caller->actor, name, "changed");
	}
	return r;
}

/* ---- deleting ---------------------------------------------------------------------------- */

int template_delete_files(struct engine *e, const char *name, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_TEMPLATE_DROP, NULL);

	snprintf(req.template, sizeof(req.template), "%s", name);
	if (keeper_conn_call(e, &req, NULL, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND ? 0 : -1;
}

static int check_unused(struct engine *e, const char *name, struct err *err)
{
	int64_t n;

	if (count_sessions(e, name, &n, err) < 0)
		return -1;
	return n ? err_set(err, ERR_CONFLICT, "template \"%s\" is in use by %lld session%s", name,
			   (long long)n, n == 1 ? "" : "s")
		 : 0;
}

/* Whether layers on top of the template wait for layers_collect(). */
static bool has_unreferenced_layers(struct engine *e, const char *name)
{
	struct store_layer_list l = { 0 };
	struct err ignored;
	bool found = false;

	if (STORE_CALL(e, store_layer_find_unreferenced, INT64_MAX, STORE_PAGE_MAX, &l, &ignored) <
	    0)
		return false;
	for (size_t i = 0; i < l.count && !found; i++)
		found = strcmp(l.items[i].template, name) == 0;
	store_layer_list_fini(&l);
	return found;
}

/* No session uses the template, so what the keeper found belongs to snapshots, or to nothing any
 * more. It knows neither. */
static int explain_conflict(struct engine *e, const char *name, struct err *err)
{
	if (err->code != ERR_CONFLICT || !strstr(err->msg, "sealed layer"))
		return -1;
	if (has_unreferenced_layers(e, name))
		return err_set(err, ERR_CONFLICT,
			       "template \"%s\": files of a deleted session or snapshot are still "
			       "being removed; try again in a minute",
			       name);
	return err_set(err, ERR_CONFLICT,
		       "template \"%s\" is in use by a snapshot, or by a template made from one; "
		       "delete that first",
		       name);
}

/* The mark makes the next startup finish an interrupted deletion. */
static int delete_locked(struct engine *e, const char *name, struct err *err)
{
	auto_fini(template_fini) struct template t;
	char holder[STORE_KEY];

	template_init(&t);
	make_holder(name, holder);
	if (template_load(e->home, name, &t, err) < 0 && err->code == ERR_NOT_FOUND)
		return not_found(name, err);
	if (check_unused(e, name, err) < 0 ||
	    template_mark(e->home, name, TEMPLATE_REMOVING, err) < 0)
		return -1;
	hook_crash("template:removing");
	if (template_delete_files(e, name, err) < 0) {
		template_unmark(e->home, name, TEMPLATE_REMOVING);
		return explain_conflict(e, name, err);
	}
	hook_crash("template:dropped");
	if (template_remove(e->home, name, err) < 0)
		return -1;
	if (t.layer)
		layers_release(e, t.layer, holder);
	return 0;
}

int template_delete(struct engine *e, const char *actor, const char *name, struct err *err)
{
	struct name_lock environment, lock;
	int r;

	if (check_not_builtin(name, err) < 0)
		return -1;
	environment_lock(e, &environment, name);
	name_lock(e, &lock, TEMPLATES_LOCK, NULL, "");
	r = delete_locked(e, name, err);
	name_unlock(&lock);
	if (r == 0)
		environment_delete(e, name);
	name_unlock(&environment);
	if (r == 0)
		template_audit(e, actor, name, "deleted");
	return r;
}

/* ---- startup ----------------------------------------------------------------------------- */

static int reconcile_template(void *arg, const char *name)
{
	struct engine *e = arg;
	struct template t;
	struct err later; /* the next startup tries again */
	bool readable = template_load(e->home, name, &t, &later) == 0;

	template_fini(&t);
	if (template_has_mark(e->home, name, TEMPLATE_REMOVING)) {
		if (delete_locked(e, name, &later) == 0)
			return 0;
		template_unmark(e->home, name, TEMPLATE_REMOVING);
	}
	if (readable)
		template_unmark(e->home, name, TEMPLATE_UNFINISHED);
	else if (template_delete_files(e, name, &later) == 0)
		(void)template_remove(e->home, name, &later);
	return 0;
}

static int hold_layer(void *arg, const char *name)
{
	struct engine *e = arg;
	char holder[STORE_KEY];
	struct template t;
	struct err ignored; /* its sessions report that the files are missing */

	make_holder(name, holder);
	if (template_load(e->home, name, &t, &ignored) == 0 && t.layer)
		(void)layers_hold(e, t.layer, holder, &ignored);
	template_fini(&t);
	return 0;
}

/* Layers may be without a hold for a moment, because the sweep has not started yet. */
int templates_reconcile(struct engine *e, struct err *err)
{
	if (template_each_marked(e->home, reconcile_template, e, err) < 0 ||
	    STORE_CALL(e, store_layer_release, HOLDER, err) < 0)
		return -1;
	return template_each(e->home, hold_layer, e, err);
}
