/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: any bytes, parsed in place as leniently as the library does. An accepted
 * head must be what a strict parser sees in the original bytes: every line ends with CR LF, no byte
 * is skipped, and the body has one length. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 200, MAX_HEAD = 2048 };

static struct {
	struct line {
		char *name, *value;
		size_t name_len, value_len;
	} lines[LINES_MAX];
	size_t n;
	union MHD_ConnectionInfo info;
} lib;

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* ---- replacements for the library ------------------------------------------------------------ */

int MHD_get_connection_values_n(struct MHD_Connection *connection, enum MHD_ValueKind kind,
				MHD_KeyValueIteratorN iterator, void *arg)
{
	(void)connection;
	for (size_t i = 0; i < lib.n; i++) {
		const struct line *l = &lib.lines[i];

		iterator(arg, kind, l->name, l->name_len, l->value, l->value_len);
	}
	return (int)lib.n;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
							enum MHD_ConnectionInfoType type, ...)
{
	(void)connection;
	must(type == MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	return &lib.info;
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* The next line, ended by LF or CR LF; NULL if there is none. */
static char *next_line(char **at, char *end)
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

/* A value ends at a NUL, as in the library. */
static bool add_line(char *line, bool spaces)
{
	char *colon = strchr(line, ':');
	struct line *l = &lib.lines[lib.n];

	if (!colon || lib.n == LINES_MAX)
		return false;
	*colon = '\0';
	l->name = line;
	l->name_len = strlen(line);
	l->value = colon + 1;
	while (spaces && (*l->value == ' ' || *l->value == '\t'))
		l->value++;
	l->value_len = strlen(l->value);
	lib.n++;
	return true;
}

struct words {
	char *method, *target, *version;
};

static bool split(char *text, char *end, struct words *ret)
{
	char *at = text, *line = next_line(&at, end);

	lib.n = 0;
	if (!line)
		return false;
	*ret = (struct words){ .method = line, .target = strchr(line, ' ') };
	if (!ret->target)
		return false;
	while (*ret->target == ' ')
		*ret->target++ = '\0';
	ret->version = strchr(ret->target, ' ');
	if (!ret->version)
		return false;
	while (*ret->version == ' ')
		*ret->version++ = '\0';
	while ((line = next_line(&at, end)) && *line) {
		if (!add_line(line, true))
			return false;
	}
	lib.info.header_size = (size_t)(at - text);
	return line != NULL;
}

/* ---- invariants ------------------------------------------------------------------------------ */

/* Whether the bytes at *at are these; then skips them. */
static bool pass(const char **at, const char *end, const char *s, size_t len)
{
	if ((size_t)(end - *at) < len || memcmp(*at, s, len) != 0)
		return false;
	*at += len;
	return true;
}

static void check_bytes(const struct http_request *rq, const struct words *w, const char *raw,
			const char *end)
{
	must(pass(&raw, end, rq->method, strlen(rq->method)) && pass(&raw, end, " ", 1));
	must(pass(&raw, end, w->target, strlen(w->target)) && pass(&raw, end, " HTTP/1.", 8));
	must(pass(&raw, end, "0", 1) || pass(&raw, end, "1", 1));
	must(pass(&raw, end, "\r\n", 2));
	for (size_t i = 0; i < rq->nheaders; i++) {
		const struct pair *h = &rq->headers[i];

		must(*h->name && pass(&raw, end, h->name, strlen(h->name)));
		must(pass(&raw, end, ":", 1));
		while (pass(&raw, end, " ", 1) || pass(&raw, end, "\t", 1))
			;
		must(!strpbrk(h->value, "\r\n"));
		must(pass(&raw, end, h->value, strlen(h->value)) && pass(&raw, end, "\r\n", 2));
	}
	must(pass(&raw, end, "\r\n", 2));
}

static void check_meaning(const struct http_request *rq)
{
	const char *length = http_header(rq, "Content-Length");
	unsigned lengths = 0;

	must(rq->path[0] == '/' && !strpbrk(rq->path, "?# \t\r\n"));
	for (size_t i = 0; i < rq->nheaders; i++)
		lengths += !strcasecmp(rq->headers[i].name, "Content-Length") ||
			   !strcasecmp(rq->headers[i].name, "Transfer-Encoding");
	must(lengths <= 1 && rq->chunked == (lengths == 1 && !length));
	must(rq->length >= -1 && (rq->length >= 0) == (length != NULL));
	must(rq->has_body == (rq->chunked || rq->length > 0));
	must(*rq->id && strlen(rq->id) <= ID_MAX && !strpbrk(rq->id, "\r\n \""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_server server = { .opts.max_head = MAX_HEAD,
					     .lock = PTHREAD_MUTEX_INITIALIZER };
	static struct conn conn = { .peer = "unix" };
	struct http_request *rq = http_request_new(&server, &conn, NULL);
	char *text = malloc(size + 1);
	const char *why = NULL;
	struct words w;
	unsigned status;

	must(rq && text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (split(text, text + size, &w)) {
		status = http_read_head(rq, w.method, w.target, w.target, w.version, &why);
		must(!status || (status >= 400 && status < 600 && why));
		if (!status) {
			/* The ends of lines are NULs by now and look the same as a NUL in the
			 * input. */
			if (!memchr(data, '\0', size))
				check_bytes(rq, &w, (const char *)data, (const char *)data + size);
			check_meaning(rq);
		}
	}
	http_request_free(rq);
	free(text);
	return 0;
}
