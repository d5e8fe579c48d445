/* SPDX-License-Identifier: Apache-2.0 */
/* A strict parser of response heads: ambiguous ones are errors. */
#include <string.h>
#include <strings.h>

#include "client/internal.h"

static int fail_malformed(struct err *err, const char *why)
{
	return err_set(err, ERR_UNAVAILABLE, "malformed response: %s", why);
}

/* The next line without its line end; NULL after the last. */
static char *next_line(char **at, const char *end)
{
	char *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));

	if (!lf)
		return NULL;
	*at = lf + 1;
	if (lf > line && lf[-1] == '\r')
		lf--;
	*lf = '\0';
	return line;
}

/* HTTP/1.1 200 OK */
static int parse_status(const char *line, struct head *h, struct err *err)
{
	const char *p = line + 9;

	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return fail_malformed(err, "it does not begin with HTTP/1.1");
	for (int i = 0; i < 3; i++) {
		if (p[i] < '0' || p[i] > '9')
			return fail_malformed(err, "it has no status");
		h->status = h->status * 10 + (p[i] - '0');
	}
	if ((p[3] && p[3] != ' ') || h->status < 100 || h->status > 599)
		return fail_malformed(err, "it has no status");
	return 0;
}

static bool is_token(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || strchr("()<>@,;:\\\"/[]?={}", *s))
			return false;
	return true;
}

static int parse_header(char *line, struct head *h, struct err *err)
{
	char *colon = strchr(line, ':'), *end;

	if (!colon || colon == line)
		return fail_malformed(err, "a line of its head has no name");
	*colon++ = '\0';
	if (!is_token(line))
		return fail_malformed(err, "a line of its head has no good name");
	if (h->nheaders == HEADERS_MAX)
		return fail_malformed(err, "its head has too many lines");
	colon += strspn(colon, " \t");
	end = colon + strlen(colon);
	while (end > colon && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	for (const char *p = colon; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return fail_malformed(err, "its head has control characters");
	h->headers[h->nheaders].name = line;
	h->headers[h->nheaders++].value = colon;
	return 0;
}

static int parse_length(const char *text, struct head *h, struct err *err)
{
	uint64_t n = 0;
	size_t len = strlen(text);

	if (!len || len > 18 || strspn(text, "0123456789") != len)
		return fail_malformed(err, "its Content-Length is none");
	for (; *text; text++)
		n = n * 10 + (uint64_t)(*text - '0');
	if (h->kind == BODY_CHUNKED || (h->kind == BODY_LENGTH && h->length != n))
		return fail_malformed(err, "it has two lengths");
	h->kind = BODY_LENGTH;
	h->length = n;
	return 0;
}

static int parse_body_kind(struct head *h, bool bodiless, struct err *err)
{
	h->kind = BODY_REST;
	for (size_t i = 0; i < h->nheaders; i++) {
		const char *name = h->headers[i].name, *value = h->headers[i].value;

		if (strcasecmp(name, "Content-Length") == 0) {
			if (parse_length(value, h, err) < 0)
				return -1;
		} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
			if (strcasecmp(value, "chunked") != 0)
				return fail_malformed(err, "its Transfer-Encoding is not known");
			if (h->kind != BODY_REST)
				return fail_malformed(err, "it has two lengths");
			h->kind = BODY_CHUNKED;
		}
	}
	if (bodiless || h->status < 200 || h->status == 204 || h->status == 304)
		h->kind = BODY_NONE;
	return 0;
}

int head_parse(char *text, size_t len, bool bodiless, struct head *ret, struct err *err)
{
	char *at = text, *end = text + len, *line;

	ret->status = 0;
	ret->nheaders = 0;
	ret->length = 0;
	if (memchr(text, '\0', len))
		return fail_malformed(err, "its head has control characters");
	line = next_line(&at, end);
	if (!line || parse_status(line, ret, err) < 0)
		return line ? -1 : fail_malformed(err, "it has no first line");
	while ((line = next_line(&at, end)) && *line) {
		if (parse_header(line, ret, err) < 0)
			return -1;
	}
	if (!line || at != end)
		return fail_malformed(err, "its head has no end");
	return parse_body_kind(ret, bodiless, err);
}

const char *head_get(const struct head *h, const char *name)
{
	for (size_t i = 0; i < h->nheaders; i++)
		if (strcasecmp(h->headers[i].name, name) == 0)
			return h->headers[i].value;
	return NULL;
}
