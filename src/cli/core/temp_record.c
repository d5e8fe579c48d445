/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/temp_record.h"

#include <stdio.h>

#include "cli/core/cleanup.h"

enum { UNUSED_MS = 60 * 1000 };

static void delete_record(void *arg)
{
	auto_call(client_free) struct client *c = NULL;
	const struct temp_record *t = arg;
	struct err ignored;
	char path[API_PATH];

	/* a client of its own: the other may be reading an answer */
	if (*t->id && target_client(&c, &ignored) == 0 &&
	    client_path(path, sizeof(path), &ignored, "/v1/%s/%s",
			t->snapshot ? "snapshots" : "sessions", t->id) == 0)
		(void)client_call(c, "DELETE", path, NULL, NULL, &ignored);
}

static const char *id_of(const struct temp_record *t, const json_t *answer)
{
	const json_t *one = json_object_get(answer, t->snapshot ? "snapshot" : "session");

	return member_text(one ? one : json_array_get(json_object_get(answer, "sessions"), 0),
			   "id");
}

int temp_record_new(struct api_cmd *a, const char *path, const json_t *body,
		    struct temp_record *ret, struct err *err)
{
	auto_json json_t *answer = NULL, *patch = NULL;
	int r;

	ret->id[0] = '\0';
	if (cleanup_set(delete_record, ret, err) < 0)
		return -1;
	cleanup_hold();
	r = client_call(a->client, "POST", path, body, &answer, err);
	snprintf(ret->id, sizeof(ret->id), "%s", id_of(ret, answer));
	cleanup_release();
	if (r < 0 || ret->snapshot)
		return r;
	patch = json_pack("{s:i, s:s, s:s}", "idle_timeout_ms", UNUSED_MS, "on_idle", "destroy",
			  "on_expire", "destroy");
	return api_cmd_call(a, "PATCH", patch, NULL, err, "/v1/sessions/%s", ret->id);
}

void temp_record_end(struct temp_record *t)
{
	cleanup_run();
	t->id[0] = '\0';
}
