/* SPDX-License-Identifier: Apache-2.0 */
/* lodge events: lists events, or follows them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

struct events_opts {
	struct api_cmd a;
	const char *session, *since;
	bool follow, all;
};

enum {
	KIND = 16, /* columns: "snapshot_removed" */
	SESSION = 24, /* an id; most keys are shorter */
	KNOWN_MAX = 10000,
	RETRY_MS = 500,
	RETRY_MAX_MS = 10000,
};

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- keys of sessions ------------------------------------------------------------------------ */

struct printer {
	struct api_cmd *a;
	json_t *keys; /* of sessions by their ids, "" for one without; NULL: not fetched yet */
	bool singly; /* fetch the session of an id that is not in `keys` */
};

/* Fetches all sessions at once. On failure, ids are printed. */
static void fetch_keys(struct printer *t)
{
	auto_json json_t *list = NULL;
	struct err ignored;
	json_t *s;
	size_t i;

	if (client_list(t->a->client, "/v1/sessions?limit=1000", "sessions", &list, &ignored) < 0)
		return;
	json_array_foreach (list, i, s) {
		json_object_set_new(t->keys, member_text(s, "id"),
				    json_string(member_text(s, "key")));
	}
}

static void fetch_key(struct printer *t, const char *id)
{
	auto_json json_t *answer = NULL;
	struct err ignored;

	if (json_object_size(t->keys) >= KNOWN_MAX)
		json_object_clear(t->keys);
	(void)api_cmd_call(t->a, "GET", NULL, &answer, &ignored, "/v1/sessions/%s", id);
	json_object_set_new(t->keys, id, json_string(member_text(answer, "session.key")));
}

/* The key of its session, or the id if that has none; "-" for an event without a session. */
static const char *session_name(struct printer *t, const json_t *event)
{
	const char *id = member_text(event, "session"), *key;

	if (!*id)
		return "-";
	if (!t->keys) {
		t->keys = json_object();
		if (!((struct events_opts *)t->a)->session)
			fetch_keys(t);
	}
	if (t->singly && !json_object_get(t->keys, id))
		fetch_key(t, id);
	key = member_text(json_object_get(t->keys, id), "");
	return *key ? key : id;
}

/* A stream cannot wait for its longest line, so columns have fixed widths. */
static void print_line(struct printer *t, const json_t *e)
{
	const char *text = member_text(e, "cause.text"), *actor = member_text(e, "cause.actor");
	auto_free char *caller = human_clean_dup(session_name(t, e));
	size_t width = caller ? human_width(caller) : 0;
	char when[HUMAN_TEXT];

	api_cmd_print("%s  %-6" PRId64 "  %-*s  %s%*s%s%s%s%s",
		      human_when(member_number(e, "at"), when), member_number(e, "id"), KIND,
		      member_text(e, "kind"), caller ? caller : "",
		      (*text || *actor) && width < SESSION ? (int)(SESSION - width) : 0, "",
		      *text ? "  " : "", text, *actor ? "  by " : "", actor);
}

static int print_event(struct printer *t, const json_t *e, struct err *err)
{
	if (t->a->json) {
		if (api_cmd_write_line(e, err) < 0)
			return -1;
	} else {
		print_line(t, e);
	}
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int make_path(struct api_cmd *a, int64_t since, char path[API_PATH], struct err *err)
{
	const struct events_opts *o = (struct events_opts *)a;
	char ref[TARGET_REF];

	snprintf(path, API_PATH, "/v1/events?limit=1000&since=%" PRId64, since);
	if (o->session && (target_ref(o->session, ref, err) < 0 ||
			   api_cmd_query(path, API_PATH, "session", ref, err) < 0))
		return -1;
	return o->all ? api_cmd_query(path, API_PATH, "all", "1", err) : 0;
}

/* `next` equals `since` on the page after the last. */
static int replay(struct printer *t, int64_t since, struct err *err)
{
	for (;;) {
		auto_json json_t *page = NULL;
		char path[API_PATH];
		int64_t next;
		json_t *e;
		size_t i;

		if (make_path(t->a, since, path, err) < 0 ||
		    client_call(t->a->client, "GET", path, NULL, &page, err) < 0)
			return -1;
		json_array_foreach (json_object_get(page, "events"), i, e) {
			if (print_event(t, e, err) < 0)
				return -1;
		}
		next = member_number(page, "next");
		if (next <= since)
			return 0;
		since = next;
	}
}

/* ---- following ------------------------------------------------------------------------------- */

struct following {
	struct printer *to;
	int64_t since;
	unsigned wait_ms;
	bool connected; /* at least once */
};

/* 0: the stream broke and can be retried; -1: it cannot. */
static int follow_once(struct following *f, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[API_PATH], last[64];
	const char *headers[] = { last, NULL };
	struct client_request rq = {
		.method = "GET", .path = path, .accept = "text/event-stream", .headers = headers
	};
	struct client_event e = { 0 };

	snprintf(last, sizeof(last), "Last-Event-ID: %" PRId64, f->since);
	if (make_path(f->to->a, f->since, path, err) < 0)
		return -1;
	if (client_open(f->to->a->client, &rq, &s, err) < 0)
		return f->connected && err->code == ERR_UNAVAILABLE ? 0 : -1;
	f->connected = true;
	while (client_read_event(s, &e, err) > 0) {
		auto_json json_t *data = e.data;

		f->since = member_number(data, "id");
		f->wait_ms = RETRY_MS;
		if (print_event(f->to, data, err) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct printer *t, int64_t since, struct err *err)
{
	struct following f = { .to = t, .since = since, .wait_ms = RETRY_MS };

	while (follow_once(&f, err) == 0) {
		struct timespec gap = { .tv_sec = f.wait_ms / 1000,
					.tv_nsec = (long)(f.wait_ms % 1000) * 1000000 };

		if (f.wait_ms == RETRY_MS)
			fputs("lodge: connection lost; retrying\n", stderr);
		nanosleep(&gap, NULL);
		f.wait_ms = f.wait_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : f.wait_ms * 2;
	}
	return -1;
}

static int run(struct api_cmd *a, struct err *err)
{
	const struct events_opts *o = (struct events_opts *)a;
	struct printer t = { .a = a, .singly = o->follow || o->session };
	uint64_t since = 0;
	int r;

	if (api_cmd_count_of(a, "--since", o->since, 0, INT64_MAX, &since, err) < 0)
		return -1;
	if (!o->follow)
		api_cmd_be_prompt(a);
	r = o->follow ? follow(&t, (int64_t)since, err) : replay(&t, (int64_t)since, err);
	json_decref(t.keys);
	return r;
}

static const struct cli_option options[] = {
	{ "follow", 'f', NULL, CLI_FLAG, offsetof(struct events_opts, follow),
	  "keep printing new events; reconnects by itself" },
	{ "session", 's', "SESSION", CLI_TEXT, offsetof(struct events_opts, session),
	  "only of this session" },
	{ "since", 0, "ID", CLI_TEXT, offsetof(struct events_opts, since),
	  "only after this event (all that are kept)" },
	{ "all", 0, NULL, CLI_FLAG, offsetof(struct events_opts, all),
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
	.size = sizeof(struct events_opts),
	.run = run,
};
