/* SPDX-License-Identifier: Apache-2.0 */
/* Failed responses and failed connections. */
#include "client/client_error.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/one_line.h"
#include "client/client_stream.h"

static const struct {
	int status;
	enum err_code code;
	int sys;
	const char *name; /* of the first row with code and sys */
} classes[] = {
	{ 401, ERR_DENIED, EKEYREJECTED, "UNAUTHENTICATED" },
	{ 403, ERR_DENIED, 0, "DENIED" },
	{ 404, ERR_NOT_FOUND, 0, "NOT_FOUND" },
	{ 408, ERR_TIMEOUT, 0, "TIMEOUT" },
	{ 409, ERR_CONFLICT, 0, "CONFLICT" },
	{ 410, ERR_NOT_FOUND, ESTALE, "GONE" },
	{ 412, ERR_CONFLICT, 0, "CONFLICT" },
	{ 413, ERR_LIMIT, EFBIG, "TOO_LARGE" },
	{ 416, ERR_LIMIT, ERANGE, "OUTPUT_GONE" },
	{ 421, ERR_DENIED, 0, "DENIED" },
	{ 429, ERR_LIMIT, 0, "LIMIT" },
	{ 502, ERR_UNAVAILABLE, 0, "UNAVAILABLE" },
	{ 503, ERR_UNAVAILABLE, 0, "UNAVAILABLE" },
	{ 504, ERR_TIMEOUT, 0, "TIMEOUT" },
	{ 507, ERR_LIMIT, ENOSPC, "LIMIT_DISK" },
};

/* Codes that share their status with others. */
static const struct {
	const char *name;
	int sys;
} special[] = { { "RATE_LIMITED", EUSERS }, { "POLICY", ENOEXEC } };

static void classify(int status, struct err *err)
{
	err->code = status < 500 ? ERR_INVALID : ERR_INTERNAL;
	err->sys = 0;
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		if (classes[i].status == status) {
			err->code = classes[i].code;
			err->sys = classes[i].sys;
		}
	}
}

int client_failed(const struct client *c, int status, const json_t *answer, struct err *err)
{
	const json_t *e = json_object_get(answer, "error");
	const char *said = json_string_value(json_object_get(e, "message")),
		   *code = json_string_value(json_object_get(e, "code"));

	if (!said)
		said = json_string_value(e);
	if (said)
		one_line_print(said, err->msg, sizeof(err->msg));
	else
		err_set(err, ERR_INVALID,
			"%.120s: status %d without an error of lodged; is this lodged?", c->url,
			status);
	classify(status, err);
	for (size_t i = 0; code && i < ARRAY_LEN(special); i++)
		if (strcmp(code, special[i].name) == 0)
			err->sys = special[i].sys;
	return -1;
}

const char *client_code(const struct err *err)
{
	const char *name = err->code == ERR_INVALID ? "INVALID" : "INTERNAL";

	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (err->sys == special[i].sys &&
		    (err->code == ERR_LIMIT || err->code == ERR_DENIED))
			return special[i].name;
	for (size_t i = ARRAY_LEN(classes); i-- > 0;)
		if (classes[i].code == err->code && !classes[i].sys)
			name = classes[i].name;
	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (classes[i].code == err->code && classes[i].sys && classes[i].sys == err->sys)
			name = classes[i].name;
	return name;
}

int problem_read(const struct client *c, struct client_stream *s, struct err *err)
{
	auto_free char *text = NULL;
	auto_call(json_decref) json_t *answer = NULL;
	struct err ignored;
	size_t len;

	if (stream_all(s, &text, &len, &ignored) == 0)
		answer = json_loadb(text, len, 0, NULL);
	return client_failed(c, client_status(s), answer, err);
}

int problem_broken(ssize_t n, struct err *err)
{
	if (n == -ETIMEDOUT)
		err_set(err, ERR_UNAVAILABLE, "lodged does not answer");
	else if (n < 0)
		err_sys(err, (int)-n, "lost the connection to lodged");
	else
		err_set(err, ERR_UNAVAILABLE,
			"lodged closed the connection before the end of the response");
	err->code = ERR_UNAVAILABLE;
	err->sys = n < 0 ? (int)-n : ECONNRESET;
	return -1;
}
