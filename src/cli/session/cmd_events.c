/* SPDX-License-Identifier: Apache-2.0 */
/* lodge events: lists events, or follows them. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"

struct events {
	struct api_cmd a;
	const char *session, *user, *kind, *since, *last;
	bool follow, all;
	uint64_t at; /* the last event that was printed */
	uint64_t newest; /* print only so many, the newest; 0: all */
	unsigned wait_ms;
	bool connected; /* at least once */
};

enum {
	KIND = 16, /* columns: "snapshot_removed" */
	SESSION = 24, /* an id; most keys are shorter */
	NEWEST_MAX = 1000, /* one page */
	RETRY_MS = 500,
	RETRY_MAX_MS = 10000,
};

/* ---- printing -------------------------------------------------------------------------------- */

/* The key of its session, or the id if that has none; "-" for an event without a session. */
static const char *session_name(const json_t *event)
{
	const char *key = member_text(event, "key"), *id = member_text(event, "session");

	return *key ? key : *id ? id : "-";
}

/* What a limit event is about, or the sentence of its cause. */
static const char *event_text(const json_t *e, char buf[FIELD_TEXT])
{
	const json_t *limits = member_get(e, "data.limits");
	size_t n = 0, i;
	json_t *name;

	if (!json_array_size(limits))
		return member_text(e, "cause.text");
	json_array_foreach (limits, i, name) {
		n += (size_t)snprintf(buf + n, FIELD_TEXT - n, "%s%.30s", i ? ", " : "",
				      member_text(name, ""));
		if (n >= FIELD_TEXT - 64)
			break;
	}
	snprintf(buf + n, FIELD_TEXT - n, " in %.30s", member_text(e, "exec"));
	return buf;
}

/* Kinds of the API that people know by another word. */
static const struct {
	const char *kind, *shown;
} words[] = {
	{ "sleep", "hibernating" },
	{ "sealed", "hibernated" },
};

static const char *shown_kind(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].kind, kind) == 0)
			return words[i].shown;
	return kind;
}

/* The list of --kind in the words of the API. Returns ret. */
static const char *api_kinds(const char *list, char ret[API_PATH])
{
	size_t n = 0;

	ret[0] = '\0';
	while (*list && n < API_PATH - 64) {
		size_t len = strcspn(list, ",");
		char one[64];

		snprintf(one, sizeof(one), "%.*s", (int)len, list);
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (strcmp(words[i].shown, one) == 0)
				snprintf(one, sizeof(one), "%s", words[i].kind);
		n += (size_t)snprintf(ret + n, API_PATH - n, "%s%s", n ? "," : "", one);
		list += len + (list[len] == ',');
	}
	return ret;
}

/* A stream cannot wait for its longest line, so columns have fixed widths. */
static void print_line(const json_t *e)
{
	char buf[FIELD_TEXT];
	const char *text = event_text(e, buf), *actor = member_text(e, "actor");
	auto_free char *caller = human_clean_dup(session_name(e));
	size_t width = caller ? human_width(caller) : 0;
	char when[HUMAN_TEXT];

	api_cmd_print("%s  %-6" PRId64 "  %-*s  %s%*s%s%s%s%s",
		      human_when(member_number(e, "at"), when), member_number(e, "id"), KIND,
		      shown_kind(member_text(e, "kind")), caller ? caller : "",
		      (*text || *actor) && width < SESSION ? (int)(SESSION - width) : 0, "",
		      *text ? "  " : "", text, *actor ? "  by " : "", actor);
}

static int print_event(const struct events *v, const json_t *e, struct err *err)
{
	if (!v->a.json)
		print_line(e);
	else if (api_cmd_write_line(e, err) < 0)
		return -1;
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int make_path(const struct events *v, char path[API_PATH], struct err *err)
{
	char ref[TARGET_REF], kinds[API_PATH];

	snprintf(path, API_PATH, "/v1/events?limit=%" PRIu64 "&since=%" PRIu64 "%s",
		 v->newest ? v->newest : 1000, v->at, v->newest ? "&order=desc" : "");
	if ((v->session && (target_ref(v->session, ref, err) < 0 ||
			    api_cmd_query(path, API_PATH, "session", ref, err) < 0)) ||
	    (v->user && api_cmd_query(path, API_PATH, "user", v->user, err) < 0) ||
	    (v->kind && api_cmd_query(path, API_PATH, "kind", api_kinds(v->kind, kinds), err) < 0))
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

/* The newest events, printed in order. */
static int print_newest(struct events *v, struct err *err)
{
	auto_json json_t *page = NULL;
	const json_t *events;
	char path[API_PATH];

	if (make_path(v, path, err) < 0 ||
	    client_call(v->a.client, "GET", path, NULL, &page, err) < 0)
		return -1;
	events = json_object_get(page, "events");
	for (size_t i = json_array_size(events); i-- > 0;) {
		const json_t *e = json_array_get(events, i);

		if (print_event(v, e, err) < 0)
			return -1;
		v->at = (uint64_t)member_number(e, "id");
	}
	v->newest = 0;
	return 0;
}

/* ---- following ------------------------------------------------------------------------------- */

/* 0: the stream broke and can be retried; -1: it cannot. */
static int follow_once(struct events *v, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[API_PATH], last[64];
	const char *headers[] = { "Last-Event-ID", last, NULL };
	struct client_request rq = {
		.method = "GET", .path = path, .accept = "text/event-stream", .headers = headers
	};
	struct client_event e = { 0 };

	snprintf(last, sizeof(last), "%" PRIu64, v->at);
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

	if (api_cmd_count_of(a, "--since", v->since, 0, INT64_MAX, &v->at, err) < 0 ||
	    api_cmd_count_of(a, "--last", v->last, 1, NEWEST_MAX, &v->newest, err) < 0)
		return -1;
	if (v->newest && print_newest(v, err) < 0)
		return -1;
	if (v->follow)
		return follow(v, err);
	if (v->last)
		return 0;
	api_cmd_be_prompt(a);
	return replay(v, err);
}

static const struct cli_option options[] = {
	{ "follow", 'f', NULL, CLI_FLAG, offsetof(struct events, follow),
	  "keep printing new events; reconnects by itself" },
	{ "session", 0, "SESSION", CLI_TEXT, offsetof(struct events, session),
	  "only of this session", .old_letter = 's' },
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct events, user),
	  "only of sessions of this user" },
	{ "kind", 0, "KINDS", CLI_TEXT, offsetof(struct events, kind),
	  "only of these kinds, as create,destroy" },
	{ "last", 0, "N", CLI_TEXT, offsetof(struct events, last),
	  "start with the newest N events (up to 1000)", .old_letter = 'n' },
	{ "since", 0, "ID", CLI_TEXT, offsetof(struct events, since),
	  "only after this event (all that are kept)" },
	{ "all", 0, NULL, CLI_FLAG, offsetof(struct events, all),
	  "of all tenants; needs a key with scope admin" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_events = {
	.name = "events",
	.usage = "[-f] [--last N] [--session SESSION] [--since ID]",
	.summary = "list or follow events",
	.options = options,
	.more = "--json prints one object per line.\n",
	.size = sizeof(struct events),
	.run = run,
};
