/* SPDX-License-Identifier: Apache-2.0 */
/* lodge events: what happened, and what happens. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/ask.h"
#include "cli/cmd.h"
#include "cli/say_session.h"

enum { LINE = 512, AGAIN_MS = 500, AGAIN_MAX_MS = 10000 };

DEFINE_AUTO(struct client_stream *, client_close);

static int say_event(struct ask *a, const json_t *e, struct err *err)
{
	const char *session = ask_text(e, "session"), *text = ask_text(e, "cause.text");
	char when[HUMAN_TEXT];

	if (a->json) {
		if (ask_say_line(e, err) < 0)
			return -1;
	} else {
		ask_print("%s  %-6" PRId64 "  %-10s  %s%s%s%s%s",
			  human_when(ask_number(e, "at"), when), ask_number(e, "id"),
			  ask_text(e, "kind"), *session ? session : "-", *text ? "  " : "", text,
			  *ask_text(e, "cause.actor") ? "  by " : "", ask_text(e, "cause.actor"));
	}
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int make_path(struct ask *a, int64_t since, char path[ASK_PATH], struct err *err)
{
	char ref[WHERE_REF];

	snprintf(path, ASK_PATH, "/v1/events?limit=1000&since=%" PRId64, since);
	if (a->session && (where_ref(a->session, ref, err) < 0 ||
			   ask_query(path, ASK_PATH, "session", ref, err) < 0))
		return -1;
	return a->all ? ask_query(path, ASK_PATH, "all", "1", err) : 0;
}

/* Page by page: `next` is always there, and the same as `since` at the end. */
static int replay(struct ask *a, int64_t since, struct err *err)
{
	for (;;) {
		auto_json json_t *page = NULL;
		char path[ASK_PATH];
		int64_t next;
		json_t *e;
		size_t i;

		if (make_path(a, since, path, err) < 0 ||
		    client_call(a->client, "GET", path, NULL, &page, err) < 0)
			return -1;
		json_array_foreach (json_object_get(page, "events"), i, e) {
			if (say_event(a, e, err) < 0)
				return -1;
		}
		next = ask_number(page, "next");
		if (next <= since)
			return 0;
		since = next;
	}
}

/* ---- as it goes on --------------------------------------------------------------------------- */

struct following {
	struct ask *a;
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
	if (make_path(f->a, f->since, path, err) < 0)
		return -1;
	if (client_open(f->a->client, &rq, &s, err) < 0)
		return f->heard && err->code == ERR_UNAVAILABLE ? 0 : -1;
	f->heard = true;
	while (client_read_event(s, &e, err) > 0) {
		auto_json json_t *data = e.data;

		f->since = ask_number(data, "id");
		f->wait_ms = AGAIN_MS;
		if (say_event(f->a, data, err) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct ask *a, int64_t since, struct err *err)
{
	struct following f = { .a = a, .since = since, .wait_ms = AGAIN_MS };

	while (follow_once(&f, err) == 0) {
		struct timespec t = { .tv_sec = f.wait_ms / 1000,
				      .tv_nsec = (long)(f.wait_ms % 1000) * 1000000 };

		if (f.wait_ms == AGAIN_MS)
			fputs("lodge: the stream broke; trying again\n", stderr);
		nanosleep(&t, NULL);
		f.wait_ms = f.wait_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : f.wait_ms * 2;
	}
	return -1;
}

static int run(struct ask *a, struct err *err)
{
	uint64_t since = 0;

	if (ask_count_of(a, "--since", a->since, 0, INT64_MAX, &since, err) < 0)
		return -1;
	return a->follow ? follow(a, (int64_t)since, err) : replay(a, (int64_t)since, err);
}

static const struct opt options[] = {
	{ "follow", 'f', NULL, ask_follow, "and go on; comes back when the connection breaks" },
	{ "session", 's', "SESSION", ask_session, "of this session alone" },
	{ "since", 0, "ID", ask_since, "those after this one (default: all that are kept)" },
	{ "all", 0, NULL, ask_all, "of all tenants; needs a key of scope admin" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_events(int argc, char **argv)
{
	static const struct ask_command command = {
		.opt = { .name = "lodge events",
			 .usage = "[-f] [--session SESSION] [--since ID]",
			 .summary = "Shows what happened to sessions, in order.",
			 .opts = options,
			 .more = "With --json one object in each line.\n" },
		.run = run,
	};

	return ask_main(&command, argc, argv);
}
