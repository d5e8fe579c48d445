/* SPDX-License-Identifier: Apache-2.0 */
/* lodge events: what happened, and what happens. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum {
	KIND = 16, /* columns: "snapshot_removed" */
	SESSION = 24, /* an id; most keys are shorter */
	KNOWN_MAX = 10000,
	AGAIN_MS = 500,
	AGAIN_MAX_MS = 10000,
};

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- who it is about ------------------------------------------------------------------------- */

struct telling {
	struct api_cmd *a;
	json_t *keys; /* of sessions by their ids, "" for one without; NULL: nobody asked yet */
	bool singly; /* sessions that are not in it may be there, and are asked for once */
};

/* All at once: those that are not among them are gone. What fails leaves ids. */
static void learn_all(struct telling *t)
{
	auto_json json_t *list = NULL;
	struct err ignored;
	json_t *s;
	size_t i;

	if (client_list(t->a->client, "/v1/sessions?limit=1000", "sessions", &list, &ignored) < 0)
		return;
	json_array_foreach (list, i, s) {
		json_object_set_new(t->keys, api_cmd_text(s, "id"),
				    json_string(api_cmd_text(s, "key")));
	}
}

static void learn_one(struct telling *t, const char *id)
{
	auto_json json_t *answer = NULL;
	struct err ignored;

	if (json_object_size(t->keys) >= KNOWN_MAX)
		json_object_clear(t->keys);
	(void)api_cmd_call(t->a, "GET", NULL, &answer, &ignored, "/v1/sessions/%s", id);
	json_object_set_new(t->keys, id, json_string(api_cmd_text(answer, "session.key")));
}

/* The key, of one that has none the id, and "-" of no session. */
static const char *called(struct telling *t, const json_t *event)
{
	const char *id = api_cmd_text(event, "session"), *key;

	if (!*id)
		return "-";
	if (!t->keys) {
		t->keys = json_object();
		if (!t->a->session)
			learn_all(t);
	}
	if (t->singly && !json_object_get(t->keys, id))
		learn_one(t, id);
	key = api_cmd_text(json_object_get(t->keys, id), "");
	return *key ? key : id;
}

/* Columns of a stream cannot wait for the longest. */
static void say_line_of(struct telling *t, const json_t *e)
{
	const char *text = api_cmd_text(e, "cause.text"), *actor = api_cmd_text(e, "cause.actor");
	auto_free char *who = human_clean_dup(called(t, e));
	size_t width = who ? human_width(who) : 0;
	char when[HUMAN_TEXT];

	api_cmd_print("%s  %-6" PRId64 "  %-*s  %s%*s%s%s%s%s",
		      human_when(api_cmd_number(e, "at"), when), api_cmd_number(e, "id"), KIND,
		      api_cmd_text(e, "kind"), who ? who : "",
		      (*text || *actor) && width < SESSION ? (int)(SESSION - width) : 0, "",
		      *text ? "  " : "", text, *actor ? "  by " : "", actor);
}

static int say_event(struct telling *t, const json_t *e, struct err *err)
{
	if (t->a->json) {
		if (api_cmd_write_line(e, err) < 0)
			return -1;
	} else {
		say_line_of(t, e);
	}
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int make_path(struct api_cmd *a, int64_t since, char path[ASK_PATH], struct err *err)
{
	char ref[WHERE_REF];

	snprintf(path, ASK_PATH, "/v1/events?limit=1000&since=%" PRId64, since);
	if (a->session && (target_ref(a->session, ref, err) < 0 ||
			   api_cmd_query(path, ASK_PATH, "session", ref, err) < 0))
		return -1;
	return a->all ? api_cmd_query(path, ASK_PATH, "all", "1", err) : 0;
}

/* Page by page: `next` is always there, and the same as `since` at the end. */
static int replay(struct telling *t, int64_t since, struct err *err)
{
	for (;;) {
		auto_json json_t *page = NULL;
		char path[ASK_PATH];
		int64_t next;
		json_t *e;
		size_t i;

		if (make_path(t->a, since, path, err) < 0 ||
		    client_call(t->a->client, "GET", path, NULL, &page, err) < 0)
			return -1;
		json_array_foreach (json_object_get(page, "events"), i, e) {
			if (say_event(t, e, err) < 0)
				return -1;
		}
		next = api_cmd_number(page, "next");
		if (next <= since)
			return 0;
		since = next;
	}
}

/* ---- as it goes on --------------------------------------------------------------------------- */

struct following {
	struct telling *to;
	int64_t since;
	unsigned wait_ms;
	bool heard; /* it has answered at least once */
};

/* 0: the stream broke, and it is worth trying again; -1: it is not. */
static int follow_once(struct following *f, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[ASK_PATH], last[64];
	const char *headers[] = { last, NULL };
	struct client_request rq = {
		.method = "GET", .path = path, .accept = "text/event-stream", .headers = headers
	};
	struct client_event e = { 0 };

	snprintf(last, sizeof(last), "Last-Event-ID: %" PRId64, f->since);
	if (make_path(f->to->a, f->since, path, err) < 0)
		return -1;
	if (client_open(f->to->a->client, &rq, &s, err) < 0)
		return f->heard && err->code == ERR_UNAVAILABLE ? 0 : -1;
	f->heard = true;
	while (client_read_event(s, &e, err) > 0) {
		auto_json json_t *data = e.data;

		f->since = api_cmd_number(data, "id");
		f->wait_ms = AGAIN_MS;
		if (say_event(f->to, data, err) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct telling *t, int64_t since, struct err *err)
{
	struct following f = { .to = t, .since = since, .wait_ms = AGAIN_MS };

	while (follow_once(&f, err) == 0) {
		struct timespec gap = { .tv_sec = f.wait_ms / 1000,
					.tv_nsec = (long)(f.wait_ms % 1000) * 1000000 };

		if (f.wait_ms == AGAIN_MS)
			fputs("lodge: the stream broke; trying again\n", stderr);
		nanosleep(&gap, NULL);
		f.wait_ms = f.wait_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : f.wait_ms * 2;
	}
	return -1;
}

static int run(struct api_cmd *a, struct err *err)
{
	struct telling t = { .a = a, .singly = a->follow || a->session };
	uint64_t since = 0;
	int r;

	if (api_cmd_count_of(a, "--since", a->since, 0, INT64_MAX, &since, err) < 0)
		return -1;
	if (!a->follow)
		api_cmd_be_prompt(a);
	r = a->follow ? follow(&t, (int64_t)since, err) : replay(&t, (int64_t)since, err);
	json_decref(t.keys);
	return r;
}

static const struct cli_option options[] = {
	{ "follow", 'f', NULL, ask_follow, "and go on; comes back when the connection breaks" },
	{ "session", 's', "SESSION", ask_session, "of this session alone" },
	{ "since", 0, "ID", ask_since, "those after this one (default: all that are kept)" },
	{ "all", 0, NULL, ask_all, "of all tenants; needs a key of scope admin" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_events(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge events",
			 .usage = "[-f] [--session SESSION] [--since ID]",
			 .summary = "Shows what happened to sessions, in order.",
			 .opts = options,
			 .more = "With --json one object in each line.\n" },
		.run = run,
	};

	return api_cmd_main(&command, argc, argv);
}
