/* SPDX-License-Identifier: Apache-2.0 */
/* Responses made of lines: NDJSON and server-sent events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "client/client_stream.h"

static int reserve_line(struct client_stream *s, struct err *err)
{
	if (s->at) {
		memmove(s->lines, s->lines + s->at, s->len - s->at);
		s->len -= s->at;
		s->at = 0;
	}
	if (s->len >= ANSWER_MAX)
		return err_set(err, ERR_LIMIT, "a line of the response is longer than 64 MiB");
	if (vec_reserve(&s->lines, &s->capacity, s->len + READ_MIN) < 0)
		return err_sys(err, ENOMEM, "response");
	return 0;
}

/* Reads the next line, valid until the next call. 1: a line; 0: the end. Text after the last line
 * end is a line too. */
static int next_line(struct client_stream *s, char **ret, size_t *ret_len, struct err *err)
{
	size_t seen = 0;
	char *lf = NULL;

	for (;;) {
		ssize_t n;

		if (s->len - s->at > seen)
			lf = memchr(s->lines + s->at + seen, '\n', s->len - s->at - seen);
		if (lf)
			break;
		seen = s->len - s->at;
		if (reserve_line(s, err) < 0)
			return -1;
		n = client_read(s, s->lines + s->len, s->capacity - s->len, err);
		if (n < 0)
			return -1;
		if (!n && !seen)
			return 0;
		if (!n) {
			lf = s->lines + s->len; /* reserve_line() left space for this */
			s->len++;
			break;
		}
		s->len += (size_t)n;
	}
	*ret = s->lines + s->at;
	*ret_len = (size_t)(lf - *ret);
	s->at += *ret_len + 1;
	if (*ret_len && (*ret)[*ret_len - 1] == '\r')
		--*ret_len;
	(*ret)[*ret_len] = '\0';
	return 1;
}

static int parse(const char *text, size_t len, json_t **ret, struct err *err)
{
	*ret = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 1 : err_set(err, ERR_UNAVAILABLE, "a line of the response is not JSON");
}

int client_read_line(struct client_stream *s, const char **ret, size_t *ret_len, struct err *err)
{
	size_t len = 0;
	char *line;
	int n;

	do
		n = next_line(s, &line, &len, err);
	while (n > 0 && !len);
	if (n > 0) {
		*ret = line;
		*ret_len = len;
	}
	return n;
}

int client_read_json(struct client_stream *s, json_t **ret, struct err *err)
{
	const char *line;
	json_t *v = NULL;
	size_t len;
	int n = client_read_line(s, &line, &len, err);

	if (n > 0)
		n = parse(line, len, &v, err);
	if (n > 0)
		*ret = v;
	return n;
}

/* ---- server-sent events ---------------------------------------------------------------------- */

struct text {
	char *bytes;
	size_t len;
};

/* Joins several data lines with line ends. */
static int add_data(struct text *t, const char *line, size_t len, struct err *err)
{
	char *more = t->len + len + 1 > ANSWER_MAX ? NULL : realloc(t->bytes, t->len + len + 1);

	if (!more)
		return err_set(err, ERR_LIMIT, "an event is longer than 64 MiB");
	if (t->bytes)
		more[t->len++] = '\n';
	memcpy(more + t->len, line, len);
	t->bytes = more;
	t->len += len;
	return 0;
}

static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0 || (line[len] && line[len] != ':'))
		return NULL;
	line += len + (line[len] == ':');
	return line + (*line == ' ');
}

static int parse_event_line(const char *line, size_t len, struct client_event *e, struct text *data,
			    struct err *err)
{
	const char *value;

	if ((value = value_of(line, "data")))
		return add_data(data, value, len - (size_t)(value - line), err);
	if ((value = value_of(line, "id")))
		snprintf(e->id, sizeof(e->id), "%s", value);
	else if ((value = value_of(line, "event")))
		snprintf(e->event, sizeof(e->event), "%s", value);
	return 0;
}

int client_read_event(struct client_stream *s, struct client_event *ret, struct err *err)
{
	struct client_event e = { 0 };
	struct text data = { 0 };
	size_t len;
	char *line;
	int n;

	while ((n = next_line(s, &line, &len, err)) > 0) {
		if (len) {
			n = parse_event_line(line, len, &e, &data, err);
			if (n < 0)
				break;
		} else if (data.bytes) {
			n = parse(data.bytes, data.len, &e.data, err);
			break;
		} else {
			e = (struct client_event){ 0 };
		}
	}
	free(data.bytes);
	if (n > 0)
		*ret = e;
	return n;
}
