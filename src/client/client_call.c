/* SPDX-License-Identifier: Apache-2.0 */
/* Single requests, and lists of several pages. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/client_request.h"

enum { PATH_ROOM = 8 << 10, PAGES_MAX = 10000 };

/* *ret is NULL for a response without a body. */
static int read_json_body(const struct client *c, struct client_stream *s, json_t **ret,
			  struct err *err)
{
	auto_free char *text = NULL;
	size_t len;
	json_t *v = NULL;

	if (stream_all(s, &text, &len, err) < 0)
		return -1;
	if (len) {
		v = json_loadb(text, len, JSON_DECODE_ANY, NULL);
		if (!v)
			return err_set(err, ERR_UNAVAILABLE, "%.120s: the response is not JSON",
				       c->url);
	}
	*ret = v;
	return 0;
}

int client_ask(struct client *c, const char *method, const char *path, const json_t *body,
	       int *ret_status, json_t **ret, struct err *err)
{
	struct client_request rq = {
		.method = method, .path = path, .accept = "application/json", .body = body
	};
	auto_call(client_close) struct client_stream *s = NULL;

	if (request_send(c, &rq, false, &s, err) < 0 || read_json_body(c, s, ret, err) < 0)
		return -1;
	*ret_status = client_status(s);
	return 0;
}

int client_call(struct client *c, const char *method, const char *path, const json_t *body,
		json_t **ret, struct err *err)
{
	struct client_request rq = {
		.method = method, .path = path, .accept = "application/json", .body = body
	};
	auto_call(client_close) struct client_stream *s = NULL;
	json_t *answer = NULL;

	if (client_open(c, &rq, &s, err) < 0 || read_json_body(c, s, &answer, err) < 0)
		return -1;
	if (ret)
		*ret = answer;
	else
		json_decref(answer);
	return 0;
}

static int add_page(const json_t *answer, const char *member, json_t *all, struct err *err)
{
	json_t *items = json_object_get(answer, member);

	if (!json_is_array(items))
		return err_set(err, ERR_UNAVAILABLE, "the response has no list of %s", member);
	return json_array_extend(all, items) < 0 ? err_sys(err, ENOMEM, "%s", member) : 0;
}

/* 1: there is another page; 0: this was the last. */
static int next_path(char buf[PATH_ROOM], const char *path, const json_t *answer, struct err *err)
{
	const json_t *next = json_object_get(answer, "next");

	if (!json_is_integer(next))
		return 0;
	if (snprintf(buf, PATH_ROOM, "%s%cafter=%lld", path, strchr(path, '?') ? '&' : '?',
		     (long long)json_integer_value(next)) >= PATH_ROOM)
		return err_set(err, ERR_INVALID, "the path is too long");
	return 1;
}

int client_list(struct client *c, const char *path, const char *member, json_t **ret,
		struct err *err)
{
	auto_call(json_decref) json_t *all = json_array();
	char buf[PATH_ROOM];
	const char *at = path;
	int r = 1;

	for (int i = 0; r > 0 && i < PAGES_MAX; i++, at = buf) {
		auto_call(json_decref) json_t *answer = NULL;

		if (client_call(c, "GET", at, NULL, &answer, err) < 0 ||
		    add_page(answer, member, all, err) < 0)
			return -1;
		r = next_path(buf, path, answer, err);
	}
	if (r > 0)
		return err_set(err, ERR_LIMIT, "the list of %s does not end", member);
	if (r == 0)
		*ret = steal_ptr(&all);
	return r;
}
