/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/templates, and their recorded environments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/core/pipe_stream.h"
#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "base/array.h"
#include "template/environment.h"
#include "template/templates.h"
#include "template/template_build.h"

/* ---- output ---------------------------------------------------------------------------------- */

static void put_env(struct json_out *j, const struct template *t)
{
	json_out_object(j, "env");
	for (size_t i = 0; i < t->nenv; i++) {
		const char *eq = strchr(t->env[i], '=');
		auto_free char *name = strndup(t->env[i], (size_t)(eq - t->env[i]));

		if (name)
			json_out_str(j, name, eq + 1);
	}
	json_out_end(j);
}

static void put_origin(struct json_out *j, const struct template *t)
{
	json_out_i64_if(j, "created_at", t->made.at, t->made.at);
	if (!t->made.from) {
		json_out_null(j, "from");
		return;
	}
	json_out_object(j, "from");
	json_out_str(j, "kind", t->made.from);
	if (t->made.snapshot)
		json_out_str(j, "snapshot", t->made.snapshot);
	json_out_end(j);
}

static void put_template(struct api_call *c, struct json_out *j, const char *key,
			 const struct template_info *i)
{
	json_out_object(j, key);
	json_out_str(j, "name", i->name);
	json_out_bool(j, "builtin", i->builtin);
	json_out_str(j, "class", i->t.class == KEEPER_CLASS_ROOT ? "root" : "user");
	json_out_str(j, "run_as", i->t.user);
	json_out_str(j, "workdir", i->t.workdir);
	put_env(j, &i->t);
	api_put_limits(c, j, &i->t);
	json_out_str(j, "policy", i->t.policy);
	put_origin(j, &i->t);
	json_out_i64_if(j, "size_bytes", i->bytes, i->bytes);
	json_out_i64(j, "sessions", i->sessions);
	if (*i->problem)
		json_out_str(j, "problem", i->problem);
	json_out_end(j);
}

struct listing {
	struct api_call *call;
	struct json_out j;
};

static int list_one(void *arg, const struct template_info *i)
{
	struct listing *l = arg;

	put_template(l->call, &l->j, NULL, i);
	return 0;
}

int v1_list_templates(struct api_call *c, struct err *err)
{
	struct listing l = { .call = c };
	int r;

	api_list(&l.j, "templates");
	r = template_list(c->engine, list_one, &l, err) < 0 ? -1 : api_reply(c, 200, &l.j, err);
	json_out_fini(&l.j);
	return r;
}

static int reply_template(struct api_call *c, unsigned status, const char *name,
			  const bool *wants_root, struct err *err)
{
	struct template_info i;
	struct json_out j;

	if (template_info(c->engine, name, &i, err) < 0)
		return -1;
	api_object(&j);
	put_template(c, &j, "template", &i);
	if (wants_root)
		json_out_bool(&j, "wants_root", *wants_root);
	template_info_fini(&i);
	return api_reply(c, status, &j, err);
}

int v1_get_template(struct api_call *c, struct err *err)
{
	return reply_template(c, 200, c->params[0], NULL, err);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int parse_policy(const json_t *b, struct template *t, struct err *err)
{
	const char *name = NULL;

	if (api_str(b, "policy", &name, err) < 0)
		return -1;
	free(t->policy);
	t->policy = name ? strdup(name) : NULL;
	return name && !t->policy ? err_sys(err, ENOMEM, "policy") : 0;
}

static void move_text(char **to, char **from)
{
	free(*to);
	*to = *from;
	*from = NULL;
}

static int replace_env(struct template *t, const struct template *new, struct err *err)
{
	for (; t->nenv; t->nenv--) {
		free(t->env[t->nenv - 1]);
		t->env[t->nenv - 1] = NULL;
	}
	for (size_t i = 0; i < new->nenv; i++)
		if (template_set_env(t, new->env[i], err) < 0)
			return -1;
	return 0;
}

/* Fields that are not given stay unchanged; given ones are replaced as a whole, null removes them.
 */
static int update_fields(void *arg, struct template *t, struct err *err)
{
	const json_t *b = arg;
	auto_fini(template_fini) struct template new;

	if (api_take_spec(b, &new, err) < 0)
		return -1;
	if (json_object_get(b, "run_as"))
		move_text(&t->user, &new.user);
	if (json_object_get(b, "workdir"))
		move_text(&t->workdir, &new.workdir);
	if (json_object_get(b, "class"))
		t->class = new.class;
	if (json_object_get(b, "limits")) {
		t->limits = new.limits;
		t->limits_set = new.limits_set;
	}
	if (json_object_get(b, "env") && replace_env(t, &new, err) < 0)
		return -1;
	return json_object_get(b, "policy") ? parse_policy(b, t, err) : 0;
}

int v1_update_template(struct api_call *c, struct err *err)
{
	json_t *b;

	if (api_body(c, "run_as workdir env limits class policy", &b, err) < 0 ||
	    template_change(c->engine, &c->caller, c->params[0], update_fields, b, err) < 0)
		return -1;
	return reply_template(c, 200, c->params[0], NULL, err);
}

int v1_delete_template(struct api_call *c, struct err *err)
{
	struct json_out j;

	if (template_delete(c->engine, c->caller.actor, c->params[0], err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "removed", c->params[0]);
	return api_reply(c, 200, &j, err);
}

/* ---- from a snapshot ------------------------------------------------------------------------- */

static int require(const char *name, const char *value, struct err *err)
{
	return value && *value ? 0 : err_set(err, ERR_INVALID, "%s: missing", name);
}

int v1_create_template(struct api_call *c, struct err *err)
{
	struct caller caller = c->caller;
	const char *name = NULL, *snapshot = NULL;
	auto_fini(template_fini) struct template over;
	json_t *b;

	template_init(&over);
	if (api_body(c, "name snapshot tenant run_as workdir env limits class policy", &b, err) <
		    0 ||
	    api_str(b, "name", &name, err) < 0 || api_str(b, "snapshot", &snapshot, err) < 0 ||
	    api_str(b, "tenant", &caller.tenant, err) < 0 || api_take_spec(b, &over, err) < 0 ||
	    parse_policy(b, &over, err) < 0 || require("name", name, err) < 0 ||
	    require("snapshot", snapshot, err) < 0 ||
	    template_promote(c->engine, &caller, name, snapshot, &over, err) < 0)
		return -1;
	return reply_template(c, 201, name, NULL, err);
}

/* ---- from an archive ------------------------------------------------------------------------- */

/* The format is detected from the content. This check only keeps out forms of browsers, and what
 * is no archive. A browser can send untyped bytes too, but not an admin key without a preflight
 * request. */
static int check_type(struct api_call *c, struct err *err)
{
	static const char *const types[] = { "application/x-tar",   "application/gzip",
					     "application/zstd",    "application/x-xz",
					     "application/x-bzip2", "application/octet-stream" };
	const char *type = http_header(c->rq, "Content-Type");
	size_t len = type ? strcspn(type, " \t;") : 0;

	if (!type)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (len == strlen(types[i]) && strncasecmp(type, types[i], len) == 0)
			return 0;
	return api_fail(err, ERR_INVALID, EMEDIUMTYPE,
			"Content-Type: %.60s is no archive; send the header \"Content-Type: "
			"application/x-tar\" (or gzip, zstd, x-xz, x-bzip2, octet-stream)",
			type);
}

static int fill(void *arg, int fd, struct err *err)
{
	return template_build_fill(arg, fd, err);
}

/* Only a complete upload becomes a template. */
int v1_upload_template(struct api_call *c, struct err *err)
{
	auto_call(template_build_free) struct template_build *b = NULL;
	const char *format = http_query(c->rq, "format");
	bool oci = false, wants_root;

	if (check_type(c, err) < 0 || api_word("format", format, "rootfs", "oci", &oci, err) < 0 ||
	    template_build_new(c->engine, c->params[0],
			       !format ? TEMPLATE_ANY
			       : oci   ? TEMPLATE_IMAGE
				       : TEMPLATE_ROOTFS,
			       &b, err) < 0 ||
	    pipe_stream_in(c, fill, b, err) < 0 ||
	    template_build_commit(b, c->caller.actor, err) < 0)
		return -1;
	wants_root = template_build_wants_root(b);
	return reply_template(c, 201, c->params[0], template_build_is_image(b) ? &wants_root : NULL,
			      err);
}

/* ---- environment ----------------------------------------------------------------------------- */

/* Merges the stored JSON object into the response. */
static int put_found(struct json_out *j, const struct environment *v, struct err *err)
{
	json_t *found = json_loads(v->record.data, 0, NULL), *value;
	const char *key;

	if (!found)
		return err_set(err, ERR_INTERNAL, "environment of %s: the stored record is corrupt",
			       v->record.template);
	json_object_foreach (found, key, value) {
		auto_free char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		if (text)
			json_out_raw(j, key, text, strlen(text));
	}
	json_decref(found);
	return 0;
}

static int reply_environment(struct api_call *c, unsigned status, struct environment *v,
			     struct err *err)
{
	auto_fini(json_out_fini) struct json_out j;
	int r;

	api_object(&j);
	json_out_object(&j, "environment");
	json_out_str(&j, "template", v->record.template);
	json_out_i64(&j, "captured_at", v->record.captured_at);
	json_out_str(&j, "template_version", v->record.version);
	json_out_bool(&j, "current", v->current);
	r = put_found(&j, v, err);
	environment_fini(v);
	return r < 0 ? -1 : api_reply(c, status, &j, err);
}

int v1_get_environment(struct api_call *c, struct err *err)
{
	struct environment v;

	return environment_get(c->engine, c->params[0], &v, err) < 0
		       ? -1
		       : reply_environment(c, 200, &v, err);
}

int v1_record_environment(struct api_call *c, struct err *err)
{
	struct environment v;
	json_t *b;

	if (api_body(c, "", &b, err) < 0 ||
	    environment_capture(c->engine, c->params[0], &v, err) < 0)
		return -1;
	return reply_environment(c, 201, &v, err);
}
