/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: created by the handler, sent by the library's thread. */

#include "http/response.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/vec.h"
#include "http/exchange.h"
#include "http/request_body.h"
#include "http/server_conn.h"

enum { FILE_BLOCK = 128 << 10 }; /* buffer of each file being sent */

/* ---- headers ------------------------------------------------------------------------------------
 */

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

static void add_headers(struct http_request *rq, struct MHD_Response *response, const char *type)
{
	if (type)
		MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "X-Request-Id", rq->id);
	/* The library rejects values that would split the head. */
	for (size_t i = 0; i < rq->nset; i++)
		MHD_add_response_header(response, rq->set[i].name, rq->set[i].value);
	/* Otherwise the library sends the end of a chunked body for HEAD. */
	if (rq->stream && rq->is_head)
		MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
	if (rq->server->draining)
		MHD_add_response_header(response, "Connection", "close");
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Bytes of the body to discard before the response is sent. */
static uint64_t rest_of_body(const struct http_request *rq)
{
	uint64_t rest = rq->chunked ? DISCARD_SMALL : (uint64_t)rq->length - rq->body_bytes;

	return rest < DISCARD_MAX ? rest : DISCARD_MAX;
}

/* Locked. Takes over the response. NULL (out of memory) sends an empty 500. */
static int put_response(struct http_request *rq, unsigned status, const char *type,
			struct MHD_Response *response, uint64_t bytes)
{
	if (!response) {
		status = 500;
		bytes = 0;
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	}
	if (!response) {
		http_abort(rq);
		return -1;
	}
	if (rq->answered) {
		MHD_destroy_response(response);
		return -1;
	}
	add_headers(rq, response, type);
	rq->response = response;
	rq->status = rq->gone ? 499 : status;
	rq->bytes = rq->is_head ? 0 : bytes;
	rq->answered = true;
	if (rq->phase == PHASE_BODY && !rq->gone)
		http_conn_deadline(rq->conn, rest_of_body(rq));
	http_wake(rq);
	return 0;
}

/* The library copies the data and does not write to it, but its parameter is not const. */
static struct MHD_Response *from_copy(const void *data, size_t len)
{
	union {
		const void *in;
		void *out;
	} bytes = { data };

	return MHD_create_response_from_buffer(
		len, bytes.out, len ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT);
}

void http_reply(struct http_request *rq, unsigned status, const char *type, const void *data,
		size_t len)
{
	struct MHD_Response *response = from_copy(data, len);

	pthread_mutex_lock(&rq->lock);
	put_response(rq, status, type, response, len);
	pthread_mutex_unlock(&rq->lock);
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

void http_error(struct http_request *rq, unsigned status, const char *code, const char *message,
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
	put_response(rq, status, "application/json", from_copy(text, len), len);
}

/* ---- files --------------------------------------------------------------------------------------
 */

/* Owned by the response, which may outlive the request. */
struct file {
	struct http_request *rq; /* valid while the library reads */
	int fd;
	uint64_t from, len;
};

static void file_free(void *arg)
{
	struct file *f = arg;

	close(f->fd);
	free(f);
}

/* Uses read(), not sendfile(): with that, the library waits forever for the rest of a file that
 * shrank. A block is read after the previous one was sent, so each has its own deadline. */
static ssize_t on_read_file(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct file *f = arg;
	uint64_t left = pos < f->len ? f->len - pos : 0;
	ssize_t n;

	do
		n = pread(f->fd, buf, left < max ? (size_t)left : max, (off_t)(f->from + pos));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return http_broken(f->rq);
	f->rq->bytes += (uint64_t)n;
	http_conn_deadline(f->rq->conn, (uint64_t)n);
	return n;
}

/* Takes over fd on success. */
static struct MHD_Response *from_file(struct http_request *rq, int fd, uint64_t offset,
				      uint64_t len)
{
	struct MHD_Response *response;
	struct file *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct file){ rq, fd, offset, len };
	response = MHD_create_response_from_callback(len, FILE_BLOCK, on_read_file, f, file_free);
	if (!response)
		free(f);
	return response;
}

void http_reply_fd(struct http_request *rq, unsigned status, const char *type, int fd,
		   uint64_t offset, uint64_t len)
{
	struct MHD_Response *response = len ? from_file(rq, fd, offset, len) : from_copy(NULL, 0);

	if (!len || !response)
		close(fd);
	pthread_mutex_lock(&rq->lock);
	put_response(rq, status, type, response, 0);
	pthread_mutex_unlock(&rq->lock);
}

/* ---- streams ------------------------------------------------------------------------------------
 */

int http_stream_begin(struct http_request *rq, unsigned status, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BUFFER_SIZE / 2, http_on_read, rq, NULL);
	int r = -1;

	pthread_mutex_lock(&rq->lock);
	if (response && !rq->answered && !rq->gone && !rq->cut &&
	    !byte_ring_init(&rq->out, BUFFER_SIZE)) {
		rq->stream = true;
		rq->conn->open_end = rq->old;
		rq->waited_ms = 0;
		r = put_response(rq, status, type, response, 0);
	} else if (response) {
		MHD_destroy_response(response);
	}
	pthread_mutex_unlock(&rq->lock);
	return r;
}

int http_stream_write(struct http_request *rq, const void *data, size_t len)
{
	const char *at = data;
	int r = -1;

	pthread_mutex_lock(&rq->lock);
	while (rq->stream && !rq->gone && !rq->cut && !rq->aborted) {
		size_t n = rq->is_head ? len : byte_ring_put(&rq->out, at, len);

		at += n;
		len -= n;
		if (n && rq->phase == PHASE_ANSWER)
			http_wake(rq);
		if (!len) {
			r = 0;
			break;
		}
		if (http_waited(rq, rq->bytes, false))
			break;
	}
	pthread_mutex_unlock(&rq->lock);
	return r;
}

/* What was written is sent, then the connection ends where a chunk should follow. */
void http_stream_abort(struct http_request *rq)
{
	pthread_mutex_lock(&rq->lock);
	if (rq->stream && !rq->gone) {
		rq->aborted = true;
		if (rq->phase == PHASE_ANSWER)
			http_conn_deadline(rq->conn, rq->out.len);
		http_wake(rq);
	}
	pthread_mutex_unlock(&rq->lock);
}

/* ---- upgrades -------------------------------------------------------------------------------- */

static void on_upgraded(void *arg, struct MHD_Connection *mhd, void *con_cls, const char *extra,
			size_t extra_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct http_request *rq = arg;
	bool late;

	(void)mhd;
	(void)con_cls;
	pthread_mutex_lock(&rq->lock);
	late = rq->stream_end;
	rq->extra = malloc(extra_len + 1);
	if (rq->extra && extra_len) {
		memcpy(rq->extra, extra, extra_len);
		rq->extra_len = extra_len;
	}
	rq->upgraded_fd = fd;
	rq->upgraded = late ? NULL : handle;
	http_progressed(rq);
	pthread_mutex_unlock(&rq->lock);
	if (late) /* the handler has already returned */
		MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* Locked. Duplicates the descriptor, because the library closes its own. */
static int take_socket(struct http_request *rq, int *ret_fd, struct err *err)
{
	int fd, flags;

	while (!rq->upgraded) {
		if (http_waited(rq, 0, false))
			return err_set(err, ERR_UNAVAILABLE, "client disconnected");
	}
	if (!rq->extra)
		return err_set(err, ERR_LIMIT, "out of memory for a connection");
	fd = fcntl(rq->upgraded_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_sys(err, errno, "duplicate the connection");
	/* With TLS this is another socket. Disable Nagle's algorithm; sockets other than TCP do not
	 * have the option. */
	(void)setsockopt(rq->conn->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	flags = fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	*ret_fd = fd;
	return 0;
}

int http_upgrade(struct http_request *rq, const char *protocol, int *ret_fd, const void **ret_extra,
		 size_t *ret_extra_len, struct err *err)
{
	struct MHD_Response *response;
	int r;

	if (rq->has_body)
		return err_set(err, ERR_INVALID, "a request with a body cannot be upgraded");
	response = MHD_create_response_for_upgrade(on_upgraded, rq);
	if (!response)
		return err_set(err, ERR_LIMIT, "out of memory for a connection");
	MHD_add_response_header(response, "Upgrade", protocol);
	pthread_mutex_lock(&rq->lock);
	if (put_response(rq, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, response, 0))
		r = err_set(err, ERR_INTERNAL, "a response was already sent");
	else
		r = take_socket(rq, ret_fd, err);
	if (!r) {
		*ret_extra = rq->extra;
		*ret_extra_len = rq->extra_len;
	}
	pthread_mutex_unlock(&rq->lock);
	return r;
}
