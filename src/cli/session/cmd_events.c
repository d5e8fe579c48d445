/* SPDX-License-Identifier: Apache-2.0 */
/* lodge events: lists events, or follows them. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "cli/core/api_cmd.h"

struct events {
	struct api_cmd a;
	const char *session, *since;
	bool follow, all;
	uint64_t at; /* the last event that was printed */
	json_t *keys; /* of sessions by their ids, "" for one without; NULL: not fetched yet */
	unsigned wait_ms;
	bool connected; /* at least once */
};

enum {
	KIND = 16, /* columns: "snapshot_removed" */
	SESSION = 24, /* an id; most keys are shorter */
	KNOWN_MAX = 10000,
	RETRY_MS = 500,
	RETRY_MAX_MS = 10000,
};

/* ---- keys of sessions ------------------------------------------------------------------------ */

/* Fetches all sessions at once. On failure, ids are printed. */
static void fetch_keys(struct events *v)
{
	auto_json json_t *list = NULL;
	struct err ignored;
	json_t *s;
	size_t i;

	if (client_list(v->a.client, "/v1/sessions?limit=1000", "sessions", &list, &ignored) < 0)
		return;
	json_array_foreach (list, i, s) {
		json_object_set_new(v->keys, member_text(s, "id"),
				    json_string(member_text(s, "key")));
	}
}

static void fetch_key(struct events *v, const char *id)
{
	auto_json json_t *answer = NULL;
	struct err ignored;

	if (json_object_size(v->keys) >= KNOWN_MAX)
		json_object_clear(v->keys);
	(void)api_cmd_call(&v->a, "GET", NULL, &answer, &ignored, "/v1/sessions/%s", id);
	json_object_set_new(v->keys, id, json_string(member_text(answer, "session.key")));
}

/* The key of its session, or the id if that has none; "-" for an event without a session. */
static const char *session_name(struct events *v, const json_t *event)
{
	const char *id = member_text(event, "session"), *key;

	if (!*id)
		return "-";
	if (!v->keys) {
		v->keys = json_object();
		if (!v->session)
			fetch_keys(v);
	}
	if ((v->follow || v->session) && !json_object_get(v->keys, id))
		fetch_key(v, id);
	key = member_text(json_object_get(v->keys, id), "");
	return *key ? key : id;
}

/* A stream cannot wait for its longest line, so columns have fixed widths. */
static void print_line(struct events *v, const json_t *e)
{
	const char *text = member_text(e, "cause.text"), *actor = member_text(e, "cause.actor");
	auto_free char *caller = human_clean_dup(session_name(v, e));
	size_t width = caller ? human_width(caller) : 0;
	char when[HUMAN_TEXT];

	api_cmd_print("%s  %-6" PRId64 "  %-*s  %s%*s%s%s%s%s",
		      human_when(member_number(e, "at"), when), member_number(e, "id"), KIND,
		      member_text(e, "kind"), caller ? caller : "",
		      (*text || *actor) && width < SESSION ? (int)(SESSION - width) : 0, "",
		      *text ? "  " : "", text, *actor ? "  by " : "", actor);
}

static int print_event(struct events *v, const json_t *e, struct err *err)
{
	if (!v->a.json)
		print_line(v, e);
	else if (api_cmd_write_line(e, err) < 0)
		return -1;
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int make_path(const struct events *v, char path[API_PATH], struct err *err)
{
	char ref[TARGET_REF];

	snprintf(path, API_PATH, "/v1/events?limit=1000&since=%" PRIu64, v->at);
	if (v->session && (target_ref(v->session, ref, err) < 0 ||
			   api_cmd_query(path, API_PATH, "session", ref, err) < 0))
		return -1;
	return v->all ? api_cmd_query(path, API_PATH, "all", "1", err) : 0;
}

/* `next` equals `since` on the page after the last. */
static int replay(struct events *v, struct err *err)
{
	for (;;) {
		auto_json json_t *page = NULL;
		char path[API_PATH];
		int64_t next;
		json_t *e;
		size_t i;

		if (make_path(v, path, err) < 0 ||
		    client_call(v->a.client, "GET", path, NULL, &page, err) < 0)
			return -1;
		json_array_foreach (json_object_get(page, "events"), i, e) {
			if (print_event(v, e, err) < 0)
				return -1;
		}
		next = member_number(page, "next");
		if (next <= (int64_t)v->at)
			return 0;
		v->at = (uint64_t)next;
	}
}

/* ---- following ------------------------------------------------------------------------------- */

/* 0: the stream broke and can be retried; -1: it cannot. */
static int follow_once(struct events *v, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[API_PATH], last[64];
	const char *headers[] = { last, NULL };
	struct client_request rq = {
		.method = "GET", .path = path, .accept = "text/event-stream", .headers = headers
	};
	struct client_event e = { 0 };

	snprintf(last, sizeof(last), "Last-Event-ID: %" PRIu64, v->at);
	if (make_path(v, path, err) < 0)
		return -1;
	if (client_open(v->a.client, &rq, &s, err) < 0)
		return v->connected && err->code == ERR_UNAVAILABLE ? 0 : -1;
	v->connected = true;
	while (client_read_event(s, &e, err) > 0) {
		auto_json json_t *data = e.data;

		v->at = (uint64_t)member_number(data, "id");
		v->wait_ms = RETRY_MS;
		if (print_event(v, data, err) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct events *v, struct err *err)
{
	v->wait_ms = RETRY_MS;
	while (follow_once(v, err) == 0) {
		if (v->wait_ms == RETRY_MS)
			fputs("lodge: connection lost; retrying\n", stderr);
		(void)poll(NULL, 0, (int)v->wait_ms);
		v->wait_ms = v->wait_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : v->wait_ms * 2;
	}
	return -1;
}

static int run(struct api_cmd *a, struct err *err)
{
	struct events *v = (struct events *)a;

	if (api_cmd_count_of(a, "--since", v->since, 0, INT64_MAX, &v->at, err) < 0)
		return -1;
	if (v->follow)
		return follow(v, err);
	api_cmd_be_prompt(a);
	return replay(v, err);
}

static void fini(struct api_cmd *a)
{
	json_decref(((struct events *)a)->keys);
}

static const struct cli_option options[] = {
	{ "follow", 'f', NULL, CLI_FLAG, offsetof(struct events, follow),
	  "keep printing new events; reconnects by itself" },
	{ "session", 's', "SESSION", CLI_TEXT, offsetof(struct events, session),
	  "only of this session" },
	{ "since", 0, "ID", CLI_TEXT, offsetof(struct events, since),
	  "only after this event (all that are kept)" },
	{ "all", 0, NULL, CLI_FLAG, offsetof(struct events, all),
	  "of all tenants; needs a key with scope admin" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_events = {
	.name = "events",
	.usage = "[-f] [--session SESSION] [--since ID]",
	.summary = "list or follow events",
	.options = options,
	.more = "--json prints one object per line.\n",
	.size = sizeof(struct events),
	.run = run,
	.fini = fini,
};
