/* SPDX-License-Identifier: Apache-2.0 */
#include "http/response.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/json.h"
#include "base/vec.h"
#include "http/exchange.h"
#include "http/server_conn.h"
#include "http/stream_poller.h"
#include "http1/http1_writer.h"

enum {
	HEAD_SIZE = 512, /* of a head without the headers that a handler sets */
	DATE_SIZE = 32,
	STREAM_FULL = 256 << 10, /* bytes that the client has not taken */
	TURN_MAX = 4 << 20, /* bytes of a file that are sent before others get a turn */
};

/* ---- head ------------------------------------------------------------------------------------ */

void http_set_header(struct http_request *rq, const char *name, const char *value)
{
	struct pair *added, p = { strdup(name), strdup(value) };

	for (size_t i = 0; i < rq->nset && p.name && p.value; i++) {
		if (!strcasecmp(rq->set[i].name, name)) {
			free(rq->set[i].value);
			rq->set[i].value = p.value;
			free(p.name);
			return;
		}
	}
	added = p.name && p.value ? vec_push(&rq->set, &rq->nset, SIZE_MAX) : NULL;
	if (!added) {
		free(p.name);
		free(p.value);
		return;
	}
	*added = p;
}

static const char *get_date(void)
{
	static _Thread_local char text[DATE_SIZE];
	static _Thread_local time_t made;
	time_t now = time(NULL);
	struct tm tm;

	if (now != made && gmtime_r(&now, &tm)) {
		(void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		made = now;
	}
	return text;
}

static void write_connection(struct http_request *rq, struct http1_writer *w, unsigned status)
{
	if (status == 101)
		http1_writer_header(w, "Connection", "Upgrade");
	else if (rq->close)
		http1_writer_header(w, "Connection", "close");
	else if (rq->old)
		http1_writer_header(w, "Connection", "keep-alive");
}

/* A value that would split the head is left out. */
static void write_set_headers(const struct http_request *rq, struct http1_writer *w)
{
	for (size_t i = 0; i < rq->nset; i++) {
		const struct pair *p = &rq->set[i];

		if (http1_text_all((struct http1_text){ p->value, strlen(p->value) }, HTTP1_VALUE))
			http1_writer_header(w, p->name, p->value);
	}
}

/* NULL: out of memory, or a name is invalid. */
static char *make_head(struct http_request *rq, unsigned status, const char *type,
		       const struct http1_framing *f, size_t *ret_len)
{
	size_t size = HEAD_SIZE + (type ? strlen(type) : 0);
	struct http1_writer w;
	char *head;

	for (size_t i = 0; i < rq->nset; i++)
		size += strlen(rq->set[i].name) + strlen(rq->set[i].value) + 4;
	head = malloc(size);
	if (!head)
		return NULL;
	http1_writer_init(&w, head, size);
	http1_writer_status(&w, status, NULL);
	http1_writer_header(&w, "Date", get_date());
	write_connection(rq, &w, status);
	if (type)
		http1_writer_header(&w, "Content-Type", type);
	http1_writer_header(&w, "X-Request-Id", rq->id);
	write_set_headers(rq, &w);
	http1_writer_framing(&w, f);
	if (http1_writer_end(&w, ret_len) == 0)
		return head;
	free(head);
	return NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Each piece that the client takes gives it time for the next. */
static int send_piece(struct http_request *rq, const char *from, size_t len, size_t *at)
{
	while (*at < len) {
		union {
			const char *in;
			void *out;
		} rest = { from + *at };
		ssize_t n = conn_io_send(&rq->conn->io, &(struct iovec){ rest.out, len - *at }, 1,
					 rq->out.file_left > 0);

		if (n < 0)
			return errno == EAGAIN ? 1 : -1;
		*at += (size_t)n;
		if (!rq->stream)
			server_conn_set_deadline(rq->conn, 0);
	}
	return 0;
}

static int send_bytes(struct http_request *rq)
{
	struct output *o = &rq->out;
	int r = send_piece(rq, o->bytes, o->len, &o->at);

	if (r)
		return r;
	free(o->bytes);
	o->bytes = NULL;
	o->at = o->len = 0;
	return send_piece(rq, o->fixed, o->fixed_len, &o->fixed_at);
}

static int send_file(struct http_request *rq)
{
	struct output *o = &rq->out;

	uint64_t turn = 0;

	while (o->file_left) {
		ssize_t n = conn_io_send_file(&rq->conn->io, o->file, o->file_at, o->file_left);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 1 : -1;
		o->file_at += (uint64_t)n;
		o->file_left -= (uint64_t)n;
		rq->bytes += (uint64_t)n;
		server_conn_set_deadline(rq->conn, 0);
		turn += (uint64_t)n;
		if (turn >= TURN_MAX && o->file_left) {
			rq->conn->io.wants = POLLOUT;
			return 1;
		}
	}
	close_fd(&o->file);
	return 0;
}

int response_flush(struct http_request *rq)
{
	int r = send_bytes(rq);

	return r ? r : send_file(rq);
}

static void advance(struct iovec **parts, int *n, size_t sent)
{
	while (*n > 0 && sent >= (*parts)->iov_len) {
		sent -= (*parts)->iov_len;
		(*parts)++;
		(*n)--;
	}
	if (*n > 0) {
		(*parts)->iov_base = (char *)(*parts)->iov_base + sent;
		(*parts)->iov_len -= sent;
	}
}

/* 0: everything was sent; 1: the socket is full, and the parts are what is left; -1: disconnected.
 */
static int send_parts(struct http_request *rq, struct iovec **parts, int *n, bool more)
{
	while (*n > 0) {
		ssize_t sent = conn_io_send(&rq->conn->io, *parts, *n, more);

		if (sent < 0)
			return errno == EAGAIN ? 1 : -1;
		advance(parts, n, (size_t)sent);
	}
	return 0;
}

static int keep(struct output *o, const struct iovec *parts, int n)
{
	size_t left = 0;

	for (int i = 0; i < n; i++)
		left += parts[i].iov_len;
	o->bytes = malloc(left + 1);
	if (!o->bytes)
		return -1;
	for (int i = 0; i < n; i++) {
		memcpy(o->bytes + o->len, parts[i].iov_base, parts[i].iov_len);
		o->len += parts[i].iov_len;
	}
	return 0;
}

/* Keeps a copy of what the socket does not take. */
static void send_or_keep(struct http_request *rq, struct iovec *parts, int n, bool more)
{
	int r = send_parts(rq, &parts, &n, more);

	if (r < 0 || (r > 0 && keep(&rq->out, parts, n) < 0))
		rq->broken = true;
}

/* Blocks. */
static int send_all(struct http_request *rq, struct iovec *parts, int n)
{
	int r;

	while ((r = send_parts(rq, &parts, &n, false)) > 0)
		if (!exchange_wait(rq, rq->bytes))
			return -1;
	if (r < 0)
		rq->broken = true;
	return r;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Whether the rest of the body is not worth being received for the sake of the connection. */
static bool skips_body(const struct http_request *rq)
{
	bool chunked = rq->framing.body == HTTP1_BODY_CHUNKED;
	uint64_t left = rq->framing.length - rq->body_bytes;

	if (rq->body_end)
		return false;
	if (rq->framing.expects_continue && !rq->continued)
		return true;
	if (!rq->body_bytes)
		return chunked || left > DISCARD_SMALL;
	return !chunked && left > DISCARD_MAX;
}

/* NULL: there is nothing to send it to, or no memory. */
static char *begin(struct http_request *rq, unsigned status, const char *type,
		   struct http1_framing f, size_t *ret_len)
{
	char *head;

	if (rq->answered)
		return NULL;
	rq->answered = true;
	rq->status = rq->broken ? 499 : status;
	rq->waited_ms = 0;
	rq->close |= rq->server->draining || skips_body(rq);
	if (status == 204 || status < 200)
		f = (struct http1_framing){ 0 };
	head = rq->broken ? NULL : make_head(rq, status, type, &f, ret_len);
	rq->broken |= !head;
	return head;
}

void http_reply(struct http_request *rq, unsigned status, const char *type, const void *data,
		size_t len)
{
	union {
		const void *in;
		void *out;
	} body = { data };
	struct http1_framing f = { .has_length = true, .length = len };
	size_t n = 0;
	auto_free char *head = begin(rq, status, type, f, &n);
	struct iovec parts[] = { { head, n }, { body.out, len } };

	if (!head)
		return;
	rq->bytes = rq->is_head ? 0 : len;
	server_conn_set_deadline(rq->conn, 0);
	send_or_keep(rq, parts, rq->bytes ? 2 : 1, false);
}

void http_reply_static(struct http_request *rq, unsigned status, const char *type, const void *data,
		       size_t len)
{
	struct http1_framing f = { .has_length = true, .length = len };
	size_t n = 0;
	auto_free char *head = begin(rq, status, type, f, &n);

	if (!head)
		return;
	server_conn_set_deadline(rq->conn, 0);
	if (!rq->is_head) {
		rq->bytes = len;
		rq->out.fixed = data;
		rq->out.fixed_len = len;
	}
	send_or_keep(rq, &(struct iovec){ head, n }, 1, rq->out.fixed_len > 0);
}

void http_reply_fd(struct http_request *rq, unsigned status, const char *type, int fd,
		   uint64_t offset, uint64_t len)
{
	struct http1_framing f = { .has_length = true, .length = len };
	auto_close int file = fd;
	size_t n = 0;
	auto_free char *head = begin(rq, status, type, f, &n);

	if (!head)
		return;
	server_conn_set_deadline(rq->conn, 0);
	if (!rq->is_head && len) {
		rq->out.file = steal_fd(&file);
		rq->out.file_at = offset;
		rq->out.file_left = len;
	}
	send_or_keep(rq, &(struct iovec){ head, n }, 1, rq->out.file_left > 0);
}

void http_error_begin(struct json_out *j, const char *code, const char *message, bool retryable)
{
	json_out_object(j, NULL);
	json_out_object(j, "error");
	json_out_str(j, "code", code);
	json_out_str(j, "message", message);
	json_out_bool(j, "retryable", retryable);
	json_out_object(j, "details");
}

void http_error_end(struct json_out *j)
{
	json_out_end(j);
	json_out_end(j);
	json_out_end(j);
}

void response_error(struct http_request *rq, unsigned status, const char *code, const char *message,
		    bool retryable)
{
	struct json_out j;
	size_t len = 0;
	auto_free char *text = NULL;

	json_out_init(&j, 4096);
	http_error_begin(&j, code, message, retryable);
	http_error_end(&j);
	text = json_out_take(&j, &len);
	json_out_fini(&j);
	if (status == 503)
		http_set_header(rq, "Retry-After", "1");
	http_reply(rq, status, "application/json", text, len);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Sends at once what the socket takes. */
static int append(struct http_request *rq, struct iovec *parts, int n)
{
	struct output *o = &rq->out, more = { .file = -1 };
	char *bytes;

	if (o->at == o->len) {
		send_or_keep(rq, parts, n, false);
		return rq->broken ? -1 : 0;
	}
	if (keep(&more, parts, n) < 0)
		return -1;
	memmove(o->bytes, o->bytes + o->at, o->len - o->at);
	o->len -= o->at;
	o->at = 0;
	bytes = realloc(o->bytes, o->len + more.len);
	if (bytes) {
		memcpy(bytes + o->len, more.bytes, more.len);
		o->bytes = bytes;
		o->len += more.len;
	}
	free(more.bytes);
	return bytes ? 0 : -1;
}

void http_stream_detach(struct http_request *rq, const struct http_stream_ops *ops, void *arg)
{
	rq->stream_state.ops = ops;
	rq->stream_state.arg = arg;
}

void http_stream_wake(struct http_request *rq)
{
	stream_poller_wake(rq);
}

bool http_stream_is_full(const struct http_request *rq)
{
	return rq->out.len - rq->out.at >= STREAM_FULL;
}

void http_stream_source(struct http_request *rq, int fd)
{
	rq->stream_state.source = fd;
}

void http_stream_watch(struct http_request *rq, short events)
{
	rq->stream_state.watched = (uint32_t)(unsigned short)events;
}

int http_stream_begin(struct http_request *rq, unsigned status, const char *type)
{
	struct http1_framing f = { .body = rq->old ? HTTP1_BODY_UNTIL_CLOSE : HTTP1_BODY_CHUNKED };
	auto_free char *head = NULL;
	size_t n = 0;

	rq->close |= rq->old || rq->is_head;
	head = begin(rq, status, type, f, &n);
	if (!head)
		return -1;
	rq->stream = true;
	rq->conn->open_end = rq->old;
	rq->conn->deadline_ms = 0; /* writing has its own */
	return send_all(rq, &(struct iovec){ head, n }, 1);
}

int http_stream_write(struct http_request *rq, const void *data, size_t len)
{
	static char tail[] = HTTP1_CHUNK_TAIL;
	char chunk[HTTP1_CHUNK_HEAD];
	union {
		const void *in;
		void *out;
	} body = { data };
	struct iovec parts[] = { { chunk, 0 }, { body.out, len }, { tail, sizeof(tail) - 1 } };

	if (!rq->stream || rq->broken || rq->aborted)
		return -1;
	if (!len || rq->is_head)
		return 0;
	if (rq->old)
		parts[2].iov_len = 0;
	else
		parts[0].iov_len = http1_chunked_head(len, chunk);
	if ((rq->stream_state.state ? append(rq, parts, 3) : send_all(rq, parts, 3)) < 0)
		return -1;
	rq->bytes += len;
	return 0;
}

void response_end_stream(struct http_request *rq)
{
	static char last[] = HTTP1_LAST_CHUNK;

	server_conn_set_deadline(rq->conn, 0);
	if (!rq->old && !rq->is_head)
		rq->broken |= append(rq, &(struct iovec){ last, sizeof(last) - 1 }, 1) < 0;
}

void http_stream_abort(struct http_request *rq)
{
	rq->aborted |= rq->stream;
}

/* ---- upgrades -------------------------------------------------------------------------------- */

int http_upgrade(struct http_request *rq, const char *protocol, struct conn_io **ret,
		 const void **ret_extra, size_t *ret_extra_len, struct err *err)
{
	struct input *in = rq->conn->in;
	auto_free char *head = NULL;
	size_t n = 0;

	if (!rq->body_end)
		return err_set(err, ERR_INVALID, "a request with a body cannot be upgraded");
	http_set_header(rq, "Upgrade", protocol);
	head = begin(rq, 101, NULL, (struct http1_framing){ 0 }, &n);
	if (!head && !rq->broken)
		return err_set(err, ERR_INTERNAL, "a response was already sent");
	rq->upgraded = rq->close = true;
	rq->conn->deadline_ms = 0;
	if (!head || send_all(rq, &(struct iovec){ head, n }, 1) < 0)
		return err_set(err, ERR_UNAVAILABLE, "client disconnected");
	*ret = &rq->conn->io;
	*ret_extra = in->bytes + in->at;
	*ret_extra_len = in->len - in->at;
	in->at = in->len;
	return 0;
}
