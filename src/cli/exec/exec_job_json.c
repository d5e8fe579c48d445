/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "cli/exec/exec_job.h"

static json_t *to_json(const struct job_text *t, bool text)
{
	auto_free char *encoded = NULL;

	if (text)
		return json_stringn(t->len ? t->bytes : "", t->len);
	encoded = malloc(BASE64_ENCODED(t->len) + 1);
	if (!encoded)
		return NULL;
	base64_encode(t->bytes, t->len, encoded);
	return json_stringn(encoded, BASE64_ENCODED(t->len));
}

/* Both streams as text, or both as base64 if one is not UTF-8. */
int exec_job_write_json(struct exec_job *j, struct err *err)
{
	const struct job_text *out = &j->kept[JOB_OUT], *error = &j->kept[JOB_ERR];
	bool text = json_is_utf8(out->bytes, out->len) && json_is_utf8(error->bytes, error->len);

	if (json_object_set_new(j->end, "encoding", json_string(text ? "utf-8" : "base64")) < 0 ||
	    json_object_set_new(j->end, "stdout", to_json(out, text)) < 0 ||
	    json_object_set_new(j->end, "stderr", to_json(error, text)) < 0)
		return err_sys(err, ENOMEM, "output");
	return api_cmd_write_json(j->end, err);
}
