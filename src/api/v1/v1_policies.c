/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/policies. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "admit/policy.h"
#include "exec/command_policy.h"

#define POLICY_FIELDS                                                                              \
	"max_active_per_user on_exceed idle_timeout_ms max_lifetime_ms network limits commands"

/* ---- output ---------------------------------------------------------------------------------- */

static int put_policy(struct api_call *c, struct json_out *j, const char *key,
		      const struct store_policy *p, struct err *err)
{
	auto_fini(template_fini) struct template most;
	int64_t sessions;

	if (policy_limits(p, &most, err) < 0 || policy_sessions(c->engine, p, &sessions, err) < 0)
		return -1;
	json_out_object(j, key);
	json_out_str(j, "name", p->name);
	json_out_str(j, "tenant", p->tenant);
	json_out_i64_if(j, "max_active_per_user", p->max_active_per_user, p->max_active_per_user);
	json_out_str(j, "on_exceed", p->on_exceed == SESSION_EXCEED_REPLACE ? "replace" : "refuse");
	json_out_i64_if(j, "idle_timeout_ms", p->idle_timeout_ms, p->idle_timeout_ms);
	json_out_i64_if(j, "max_lifetime_ms", p->max_lifetime_ms, p->max_lifetime_ms);
	json_out_text(j, "network", p->network);
	api_put_limits(c, j, &most);
	api_put_raw(j, "commands", p->commands, "null");
	json_out_i64(j, "created_at", p->created_at);
	json_out_i64(j, "sessions", sessions);
	json_out_end(j);
	return 0;
}

static int reply_policy(struct api_call *c, unsigned status, const struct store_policy *p,
			struct err *err)
{
	auto_fini(json_out_fini) struct json_out j;

	api_object(&j);
	return put_policy(c, &j, "policy", p, err) < 0 ? -1 : api_reply(c, status, &j, err);
}

/* ---- input ----------------------------------------------------------------------------------- */

/* null removes the value. */
static int parse_number(const json_t *b, const char *name, int64_t max, int64_t *ret,
			struct err *err)
{
	int64_t n = 0;

	if (!json_object_get(b, name))
		return 0;
	if (api_int(b, name, 1, max, &n, err) < 0)
		return -1;
	*ret = n;
	return 0;
}

static int parse_words(const json_t *b, struct store_policy *p, struct err *err)
{
	const char *network = NULL;
	bool replace = false;

	if (api_choice(b, "on_exceed", "refuse", "replace", &replace, err) < 0 ||
	    api_str(b, "network", &network, err) < 0)
		return -1;
	if (network && (!*network || strlen(network) >= sizeof(p->network)))
		return err_set(err, ERR_INVALID,
			       "network: must be \"none\" (sandboxes have no network)");
	if (json_object_get(b, "on_exceed"))
		p->on_exceed = replace ? SESSION_EXCEED_REPLACE : SESSION_EXCEED_REFUSE;
	if (json_object_get(b, "network"))
		snprintf(p->network, sizeof(p->network), "%s", network ? network : "");
	return 0;
}

static int parse_limits(const json_t *b, struct store_policy *p, struct err *err)
{
	auto_fini(template_fini) struct template most;

	if (api_take_spec(b, &most, err) < 0)
		return -1;
	return json_object_get(b, "limits") ? policy_set_limits(p, &most, err) : 0;
}

static int parse_commands(const json_t *b, struct store_policy *p, struct err *err)
{
	const json_t *v = json_object_get(b, "commands");
	auto_free char *text = NULL;

	if (!v)
		return 0;
	if (!json_is_null(v)) {
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!text)
			return err_sys(err, ENOMEM, "commands");
	}
	return policy_set_commands(p, text, err);
}

/* Fields that are not given stay unchanged. */
static int update_fields(void *arg, struct store_policy *p, struct err *err)
{
	const json_t *b = arg;

	if (parse_number(b, "max_active_per_user", INT_MAX, &p->max_active_per_user, err) < 0 ||
	    parse_number(b, "idle_timeout_ms", INT64_MAX / 4, &p->idle_timeout_ms, err) < 0 ||
	    parse_number(b, "max_lifetime_ms", INT64_MAX / 4, &p->max_lifetime_ms, err) < 0 ||
	    parse_words(b, p, err) < 0 || parse_commands(b, p, err) < 0)
		return -1;
	return parse_limits(b, p, err);
}

static int parse_name(const json_t *b, const char *field, char *ret, size_t size, struct err *err)
{
	*ret = '\0';
	if (api_copy(b, field, ret, size, err) < 0)
		return -1;
	return *ret ? 0 : err_set(err, ERR_INVALID, "%s: must be 1 to %zu bytes", field, size - 1);
}

/* ---- routes ---------------------------------------------------------------------------------- */

int v1_create_policy(struct api_call *c, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };
	json_t *b;

	snprintf(p.tenant, sizeof(p.tenant), "%s", c->caller.tenant);
	if (api_body(c, "name tenant " POLICY_FIELDS, &b, err) < 0 ||
	    parse_name(b, "name", p.name, sizeof(p.name), err) < 0 ||
	    (json_object_get(b, "tenant") &&
	     parse_name(b, "tenant", p.tenant, sizeof(p.tenant), err) < 0) ||
	    update_fields(b, &p, err) < 0 || policy_add(c->engine, c->caller.actor, &p, err) < 0)
		return -1;
	return reply_policy(c, 201, &p, err);
}

int v1_list_policies(struct api_call *c, struct err *err)
{
	auto_fini(store_policy_list_fini) struct store_policy_list l = { 0 };
	auto_fini(json_out_fini) struct json_out j = { 0 };
	struct store_page page;
	const char *tenant;

	if (api_query_tenant(c, &tenant, err) < 0 || api_page(c, &page, err) < 0 ||
	    policy_list(c->engine, tenant, page, &l, err) < 0)
		return -1;
	api_list(&j, "policies");
	for (size_t i = 0; i < l.count; i++)
		if (put_policy(c, &j, NULL, &l.items[i], err) < 0)
			return -1;
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}

static int find_policy(struct api_call *c, struct store_policy *ret, struct err *err)
{
	const char *tenant;

	if (api_query_tenant(c, &tenant, err) < 0)
		return -1;
	return policy_get(c->engine, tenant, c->params[0], ret, err);
}

int v1_get_policy(struct api_call *c, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };

	return find_policy(c, &p, err) < 0 ? -1 : reply_policy(c, 200, &p, err);
}

int v1_update_policy(struct api_call *c, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };
	const char *tenant;
	json_t *b;

	if (api_query_tenant(c, &tenant, err) < 0 || api_body(c, POLICY_FIELDS, &b, err) < 0 ||
	    policy_change(c->engine, c->caller.actor, tenant, c->params[0], update_fields, b, &p,
			  err) < 0)
		return -1;
	return reply_policy(c, 200, &p, err);
}

int v1_delete_policy(struct api_call *c, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };

	if (find_policy(c, &p, err) < 0 ||
	    policy_remove(c->engine, c->caller.actor, p.tenant, p.name, err) < 0)
		return -1;
	return reply_policy(c, 200, &p, err);
}

/* Tests a command without running it. */
int v1_test_policy(struct api_call *c, struct err *err)
{
	auto_fini(policy_verdict_fini) struct policy_verdict v = { 0 };
	const char *tenant, *text = NULL;
	struct json_out j;
	json_t *b;

	if (api_query_tenant(c, &tenant, err) < 0 || api_body(c, "command", &b, err) < 0 ||
	    api_str(b, "command", &text, err) < 0)
		return -1;
	if (!text)
		return err_set(err, ERR_INVALID, "command: missing");
	if (policy_check_command(c->engine, tenant, c->params[0], text, &v, err) < 0)
		return -1;
	api_object(&j);
	shell_put_verdict(&j, &v.rules, &v.words);
	return api_reply(c, 200, &j, err);
}
