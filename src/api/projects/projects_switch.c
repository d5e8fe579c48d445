/* SPDX-License-Identifier: Apache-2.0 */
/* /api/switch-project and /api/cleanup-sandboxes: the sandbox of a user. */
#include <stdio.h>

#include "api/core/internal.h"
#include "api/core/sse.h"
#include "api/projects/projects.h"
#include "project/project.h"
#include "project/users.h"
#include "project/project_switch.h"
#include "project/user_kill.h"

/* ---- switch ---------------------------------------------------------------------------------- */

/* Why files were lost; null if none were. */
static void put_loss(struct json_out *j, const char *key, const struct switch_result *s)
{
	if (!s->state_lost) {
		json_out_null(j, key);
		return;
	}
	json_out_object(j, key);
	json_out_str(j, "code", s->cause.code);
	json_out_str(j, "text", s->cause.text);
	api_put_iso(j, "at", s->cause.at);
	json_out_end(j);
}

static void put_switched(struct json_out *j, const struct switch_result *s)
{
	bool named = *s->fragment != '\0';
	char text[STORE_TEXT];

	snprintf(text, sizeof(text), "Successfully switched to %s %s",
		 named ? "fragment" : "project", named ? s->fragment : s->project);
	json_out_object(j, NULL);
	json_out_bool(j, "success", true);
	json_out_str(j, "message", text);
	json_out_object(j, "result");
	json_out_str(j, "sandboxId", s->sandbox);
	json_out_str(j, "sessionId", s->session);
	/* the address of a web server in the sandbox, which nothing outside can reach */
	json_out_null(j, "sandboxUrl");
	json_out_str(j, "sandboxUrlReason",
		     "ports of a sandbox cannot be reached from outside; use sandboxId with "
		     "/v1/sessions/{id}");
	json_out_u64(j, "restoredFiles", s->restored_files);
	json_out_bool(j, "hasRestoredFiles", s->has_restored_files);
	json_out_text(j, "fragmentId", s->fragment);
	json_out_str(j, "activeProjectId", s->project);
	json_out_text(j, "activeFragmentId", s->fragment);
	json_out_bool(j, "stateLost", s->state_lost);
	put_loss(j, "cause", s);
}

struct telling {
	struct api_call *c;
	bool begun, gone; /* after a disconnect the switch is still complete */
};

/* Until the first event, an error is an ordinary response. */
static void send_progress(void *arg, const struct progress_state *now)
{
	struct telling *t = arg;

	if (!t->begun)
		t->gone = sse_begin(t->c) < 0;
	t->begun = true;
	if (!t->gone)
		t->gone = sse_send_progress(t->c, now) < 0;
}

static int end_stream(struct telling *t, const struct switch_result *s, const struct err *why)
{
	struct json_out j;

	if (why && api_status(why) >= 500)
		api_log_error(t->c, why);
	api_out(&j);
	if (why)
		(void)t->c->surface->put_error(t->c, why, &j);
	else
		put_switched(&j, s);
	(void)sse_send(t->c, 0, why ? "error" : "result", &j);
	return 0;
}

int projects_switch(struct api_call *c, struct err *err)
{
	struct telling t = { .c = c };
	struct switch_opts want = { .on_progress = sse_is_requested(c) ? send_progress : NULL,
				    .progress_arg = &t };
	struct switch_result s;
	struct json_out j;
	json_t *b;
	int r;

	if (api_body(c, NULL, &b, err) < 0 || api_str(b, "projectId", &want.project, err) < 0 ||
	    api_str(b, "fragmentId", &want.fragment, err) < 0)
		return -1;
	if (!want.project || !*want.project)
		return err_set(err, ERR_INVALID, "projectId: missing");
	if (projects_user(c, b, &want.user, err) < 0 ||
	    (want.on_progress && api_take(c, TENANT_STREAMS, 1, err) < 0))
		return -1;
	r = switch_user(c->engine, &c->caller, &want, &s, err);
	if (t.begun)
		return end_stream(&t, &s, r < 0 ? err : NULL);
	if (r < 0)
		return -1;
	api_out(&j);
	put_switched(&j, &s);
	return api_reply(c, 200, &j, err);
}

/* ---- cleanup --------------------------------------------------------------------------------- */

static void put_killed(struct json_out *j, const char *key, const struct kill_result_list *l,
		       bool killed)
{
	json_out_array(j, key);
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].killed == killed)
			json_out_str(j, NULL, l->items[i].sandbox);
	json_out_end(j);
}

int projects_clean_up(struct api_call *c, struct err *err)
{
	char text[STORE_USER + 64];
	auto_fini(kill_result_list_fini) struct kill_result_list l = { 0 };
	struct json_out j;
	const char *user = NULL;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 || projects_user(c, b, &user, err) < 0 ||
	    user_kill_sandboxes(c->engine, &c->caller, user, &l, err) < 0)
		return -1;
	snprintf(text, sizeof(text), "Sandbox cleanup completed for user %s", user);
	api_object(&j);
	json_out_bool(&j, "success", true);
	json_out_str(&j, "message", text);
	json_out_object(&j, "results");
	json_out_u64(&j, "totalProjects", l.projects);
	json_out_u64(&j, "killed", l.killed);
	json_out_u64(&j, "failed", l.failed);
	put_killed(&j, "killedSandboxes", &l, true);
	put_killed(&j, "failedSandboxes", &l, false);
	return api_reply(c, 200, &j, err);
}

static void put_current(struct json_out *j, const char *key, const struct user_info *i)
{
	const struct store_session *s = &i->session;

	if (!i->has_session || !user_counts_session(s)) {
		json_out_null(j, key);
		return;
	}
	json_out_object(j, key);
	json_out_str(j, "sandboxId", s->sandbox);
	json_out_text(j, "projectId", s->project);
	json_out_text(j, "projectName", i->project_name);
	api_put_iso(j, "createdAt", s->started_at);
	api_put_iso(j, "lastUsedAt", s->last_activity_at);
	json_out_end(j);
}

/* An unknown user has no sandboxes. */
int projects_list_sandboxes(struct api_call *c, struct err *err)
{
	auto_fini(user_info_fini) struct user_info i = { 0 };
	struct json_out j;
	const char *user = NULL;

	if (projects_user(c, NULL, &user, err) < 0 ||
	    (user_get(c->engine, &c->caller, user, &i, err) < 0 && err->code != ERR_NOT_FOUND))
		return -1;
	api_object(&j);
	json_out_str(&j, "userId", user);
	json_out_u64(&j, "activeSandboxes", i.active);
	put_current(&j, "currentSandbox", &i);
	return api_reply(c, 200, &j, err);
}
