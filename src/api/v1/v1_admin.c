/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/keys and /v1/users. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "api/core/auth.h"
#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "admit/api_key.h"
#include "engine/keeper_conn.h"
#include "project/project.h"
#include "project/users.h"
#include "admit/quota.h"
#include "engine/audit.h"
#include "sandbox/template/template_json.h"
#include "session/session_api.h"

/* ---- keys ------------------------------------------------------------------------------------ */

static void put_key(struct json_out *j, const char *name, const struct store_key *k)
{
	json_out_object(j, name);
	json_out_str(j, "id", k->id);
	json_out_str(j, "tenant", k->tenant);
	json_out_str(j, "scope", k->scopes);
	json_out_text(j, "user", k->user);
	json_out_text(j, "name", k->name);
	json_out_i64(j, "created_at", k->created_at);
	json_out_i64_if(j, "expires_at", k->expires_at, k->expires_at);
	json_out_end(j);
}

/* A tenant key may create and remove only tokens for its users and sessions. */
static int check_tenant(const struct api_call *c, const struct store_key *k, struct err *err)
{
	char session[STORE_ID];
	enum api_scope scope;

	if (auth_scope(k->scopes, &scope, session, err) < 0)
		return -1;
	if (c->scope == API_ADMIN)
		return 0;
	if (strcmp(k->tenant, c->caller.tenant) != 0)
		return err_set(err, ERR_DENIED, "tenant: requires a key with scope \"admin\"");
	if (scope != API_SESSION)
		return err_set(err, ERR_DENIED, "scope: requires a key with scope \"admin\"");
	return 0;
}

/* A key for a sandbox is one for its session. */
static int check_scopes(struct api_call *c, struct store_key *k, struct err *err)
{
	char session[STORE_ID];
	enum api_scope scope;
	struct caller caller = { k->tenant, c->caller.actor };
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (check_tenant(c, k, err) < 0 || auth_scope(k->scopes, &scope, session, err) < 0)
		return -1;
	if (*k->user && scope != API_SESSION)
		return err_set(err, ERR_INVALID, "user: only allowed with scope \"session\"");
	if (!*session)
		return 0;
	if (session_get(c->engine, &caller, &(struct session_ref){ .id = session }, &s, err) < 0)
		return -1;
	snprintf(k->scopes, sizeof(k->scopes), "session:%s", s.id);
	return 0;
}

static int parse_key(struct api_call *c, struct store_key *k, struct err *err)
{
	int64_t in = 0;
	json_t *b;

	snprintf(k->tenant, sizeof(k->tenant), "%s", c->caller.tenant);
	snprintf(k->scopes, sizeof(k->scopes), "session");
	if (api_body(c, "tenant scope user name expires_at expires_in_ms", &b, err) < 0 ||
	    api_copy(b, "tenant", k->tenant, sizeof(k->tenant), err) < 0 ||
	    api_copy(b, "scope", k->scopes, sizeof(k->scopes), err) < 0 ||
	    api_copy(b, "user", k->user, sizeof(k->user), err) < 0 ||
	    api_copy(b, "name", k->name, sizeof(k->name), err) < 0 ||
	    api_int(b, "expires_at", clock_wall_ms(), INT64_MAX, &k->expires_at, err) < 0 ||
	    api_int(b, "expires_in_ms", 1, INT64_MAX / 4, &in, err) < 0)
		return -1;
	if (in && k->expires_at)
		return err_set(err, ERR_INVALID, "expires_in_ms: not allowed with expires_at");
	if (in)
		k->expires_at = clock_wall_ms() + in;
	return check_scopes(c, k, err);
}

int v1_create_key(struct api_call *c, struct err *err)
{
	struct store_key k = { 0 };
	char text[KEY_TEXT];
	struct json_out j;

	if (parse_key(c, &k, err) < 0 || auth_generate_key(text, err) < 0 ||
	    auth_hash_key(text, k.hash, err) < 0 ||
	    api_key_add(c->engine, c->caller.actor, &k, err) < 0)
		return -1;
	http_set_header(c->rq, "Cache-Control", "no-store");
	api_object(&j);
	put_key(&j, "key", &k);
	json_out_str(&j, "secret", text);
	explicit_bzero(text, sizeof(text));
	return api_reply(c, 201, &j, err);
}

int v1_list_keys(struct api_call *c, struct err *err)
{
	const char *tenant;
	auto_fini(store_key_list_fini) struct store_key_list l = { 0 };
	struct store_page page;
	struct json_out j;

	if (api_query_tenant(c, &tenant, err) < 0)
		return -1;
	if (c->scope == API_ADMIN && !http_query(c->rq, "tenant"))
		tenant = NULL;
	if (api_page(c, &page, err) < 0 || api_key_list(c->engine, tenant, page, &l, err) < 0)
		return -1;
	api_list(&j, "keys");
	for (size_t i = 0; i < l.count; i++)
		put_key(&j, NULL, &l.items[i]);
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}

static int find_key(struct api_call *c, struct store_key *ret, struct err *err)
{
	if (api_key_get(c->engine, c->params[0], ret, err) < 0)
		return -1;
	if (c->scope != API_ADMIN && strcmp(ret->tenant, c->caller.tenant) != 0)
		return err_set(err, ERR_NOT_FOUND, "no key %.64s", c->params[0]);
	return 0;
}

static int reply_key(struct api_call *c, const struct store_key *k, struct err *err)
{
	struct json_out j;

	api_object(&j);
	put_key(&j, "key", k);
	return api_reply(c, 200, &j, err);
}

int v1_get_key(struct api_call *c, struct err *err)
{
	struct store_key k;

	return find_key(c, &k, err) < 0 ? -1 : reply_key(c, &k, err);
}

int v1_delete_key(struct api_call *c, struct err *err)
{
	struct store_key k;

	if (find_key(c, &k, err) < 0 || check_tenant(c, &k, err) < 0 ||
	    api_key_retire(c->engine, c->caller.actor, &k, err) < 0)
		return -1;
	auth_forget(c->api->auth, k.id);
	return reply_key(c, &k, err);
}

/* ---- users ----------------------------------------------------------------------------------- */

/* A user token may read its own user. */
static int check_user(const struct api_call *c, struct err *err)
{
	if (c->scope >= API_TENANT || (!*c->session && strcmp(c->user, c->params[0]) == 0))
		return 0;
	return err_set(err, ERR_DENIED, "permission denied: requires a key with scope \"tenant\"");
}

/* Quotas are sums of limits of sandboxes, and hold as far as these do. */
static void put_quota_problems(struct api_call *c, struct json_out *j, const struct store_quota *q)
{
	const struct {
		const char *name, *limit;
		int64_t value;
	} all[] = {
		{ "memory_bytes", "memory_bytes", q->memory_bytes },
		{ "disk_bytes", "disk_bytes", q->disk_bytes },
		{ "cpu_ms", "cpus", q->cpu_ms },
	};
	struct enforcement f;

	keeper_conn_enforcement(c->engine, &f);
	json_out_array(j, "quota_not_enforced");
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].value)
			template_put_problem(
				j, all[i].name,
				enforcement_problem(&f, KEEPER_STORE_DISK, all[i].limit));
	json_out_end(j);
}

static void put_quota(struct api_call *c, struct json_out *j, const struct store_quota *q,
		      const struct store_usage *u)
{
	json_out_object(j, "quota"); /* 0: unlimited */
	json_out_i64(j, "sandboxes", q->sandboxes);
	json_out_i64(j, "memory_bytes", q->memory_bytes);
	json_out_i64(j, "disk_bytes", q->disk_bytes);
	json_out_i64(j, "cpu_ms", q->cpu_ms);
	json_out_end(j);
	put_quota_problems(c, j, q);
	json_out_object(j, "usage");
	json_out_i64(j, "sessions", u->sessions);
	json_out_i64(j, "active", u->active);
	json_out_i64(j, "memory_bytes", u->memory_bytes);
	json_out_i64(j, "disk_bytes", u->disk_bytes);
	json_out_i64(j, "cpu_ms", u->cpu_ms);
	json_out_end(j);
}

static int reply_quota(struct api_call *c, struct err *err)
{
	struct store_usage used;
	struct store_quota q;
	struct json_out j;

	if (quota_get(c->engine, c->caller.tenant, c->params[0], &q, &used, err) < 0)
		return -1;
	api_object(&j);
	put_quota(c, &j, &q, &used);
	return api_reply(c, 200, &j, err);
}

int v1_get_quota(struct api_call *c, struct err *err)
{
	return check_user(c, err) < 0 ? -1 : reply_quota(c, err);
}

/* Replaces the whole quota: fields that are not given are unlimited. */
int v1_set_quota(struct api_call *c, struct err *err)
{
	struct store_quota q = { 0 };
	json_t *b;

	if (strlen(c->params[0]) >= sizeof(q.user))
		return err_set(err, ERR_INVALID, "user: longer than %zu bytes", sizeof(q.user) - 1);
	snprintf(q.tenant, sizeof(q.tenant), "%s", c->caller.tenant);
	snprintf(q.user, sizeof(q.user), "%s", c->params[0]);
	if (api_body(c, "sandboxes memory_bytes disk_bytes cpu_ms", &b, err) < 0 ||
	    api_int(b, "sandboxes", 0, INT64_MAX, &q.sandboxes, err) < 0 ||
	    api_int(b, "memory_bytes", 0, INT64_MAX, &q.memory_bytes, err) < 0 ||
	    api_int(b, "disk_bytes", 0, INT64_MAX, &q.disk_bytes, err) < 0 ||
	    api_int(b, "cpu_ms", 0, INT64_MAX, &q.cpu_ms, err) < 0 ||
	    quota_set(c->engine, &q, err) < 0)
		return -1;
	return reply_quota(c, err);
}

static void put_user(struct api_call *c, struct json_out *j, const struct user_info *i)
{
	json_out_object(j, "user");
	json_out_str(j, "id", i->user.id);
	json_out_text(j, "name", i->user.name);
	json_out_text(j, "email", i->user.email);
	json_out_text(j, "project", i->user.project);
	json_out_text(j, "fragment", i->user.fragment);
	json_out_u64(j, "active", i->active);
	if (i->has_session)
		api_put_session(c, j, "session", &i->session);
	else
		json_out_null(j, "session");
	json_out_i64_if(j, "created_at", i->user.created_at, i->user.created_at);
	json_out_end(j);
}

static int reply_user(struct api_call *c, struct err *err)
{
	auto_fini(user_info_fini) struct user_info i = { 0 };
	struct store_usage used;
	struct store_quota q;
	struct json_out j;

	if (quota_get(c->engine, c->caller.tenant, c->params[0], &q, &used, err) < 0 ||
	    user_get(c->engine, &c->caller, c->params[0], &i, err) < 0)
		return -1;
	api_object(&j);
	put_user(c, &j, &i);
	put_quota(c, &j, &q, &used);
	return api_reply(c, 200, &j, err);
}

int v1_get_user(struct api_call *c, struct err *err)
{
	return check_user(c, err) < 0 ? -1 : reply_user(c, err);
}

/* An empty text removes the name or address. */
int v1_update_user(struct api_call *c, struct err *err)
{
	const char *name = NULL, *email = NULL;
	json_t *b;

	if (api_body(c, "name email", &b, err) < 0 || api_str(b, "name", &name, err) < 0 ||
	    api_str(b, "email", &email, err) < 0 ||
	    user_set(c->engine, &c->caller, c->params[0], name, email, err) < 0 ||
	    audit_write(c->engine, c->caller.tenant, "user_change", c->caller.actor, c->params[0],
			err) < 0)
		return -1;
	return reply_user(c, err);
}
