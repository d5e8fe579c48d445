/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/templates/{name}/environment: the recorded environment of a template. */
#include <stdlib.h>
#include <string.h>

#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "template/environment.h"

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
	struct json_out j;
	int r;

	api_object(&j);
	json_out_object(&j, "environment");
	json_out_str(&j, "template", v->record.template);
	json_out_i64(&j, "captured_at", v->record.captured_at);
	json_out_str(&j, "template_version", v->record.version);
	json_out_bool(&j, "current", v->current);
	r = put_found(&j, v, err);
	environment_fini(v);
	if (r < 0) {
		json_out_fini(&j);
		return -1;
	}
	return api_reply(c, status, &j, err);
}

int v1_get_environment(struct api_call *c, struct err *err)
{
	struct environment v;

	if (environment_get(c->engine, c->params[0], &v, err) < 0)
		return -1;
	return reply_environment(c, 200, &v, err);
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
