/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session/temp_session.h"

#include <stdio.h>

#include "cli/core/cleanup.h"

enum { UNUSED_MS = 60 * 1000 };

DEFINE_AUTO(struct client *, client_free);

static void delete_session(void *arg)
{
	auto_call(client_free) struct client *c = NULL;
	const struct temp_session *t = arg;
	struct err ignored;
	char path[API_PATH];

	/* a client of its own: the other may be reading an answer */
	if (*t->id && target_client(&c, &ignored) == 0 &&
	    client_path(path, sizeof(path), &ignored, "/v1/sessions/%s", t->id) == 0)
		(void)client_call(c, "DELETE", path, NULL, NULL, &ignored);
}

static const json_t *session_of(const json_t *answer)
{
	const json_t *one = json_object_get(answer, "session");

	return one ? one : json_array_get(json_object_get(answer, "sessions"), 0);
}

int temp_session_new(struct api_cmd *a, const char *path, const json_t *body,
		     struct temp_session *ret, struct err *err)
{
	auto_json json_t *answer = NULL, *patch = NULL;
	int r;

	ret->id[0] = '\0';
	if (cleanup_set(delete_session, ret, err) < 0)
		return -1;
	cleanup_hold();
	r = client_call(a->client, "POST", path, body, &answer, err);
	snprintf(ret->id, sizeof(ret->id), "%s", member_text(session_of(answer), "id"));
	cleanup_release();
	if (r < 0)
		return -1;
	patch = json_pack("{s:i, s:s, s:s}", "idle_timeout_ms", UNUSED_MS, "on_idle", "destroy",
			  "on_expire", "destroy");
	return api_cmd_call(a, "PATCH", patch, NULL, err, "/v1/sessions/%s", ret->id);
}

void temp_session_end(struct temp_session *t)
{
	cleanup_run();
	t->id[0] = '\0';
}
