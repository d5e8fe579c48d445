/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/api_body.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/core/internal.h"
#include "base/clock.h"
#include "base/json.h"

enum {
	BODY_MAX = 1 << 20,
	REPLY_MAX = 64 << 20,
	PAGE_DEFAULT = 100,
	VALUES_FEW = 8 << 10, /* per body; a value of two bytes takes 250 bytes of memory */
	VALUES_MAX = 64 << 10, /* for routes with API_LARGE_BODY */
	GATE_WAIT_MS = 30000,
	GATE_CHECK_MS = 500,
};

/* ---- large requests -------------------------------------------------------------------------- */

static void leave_gate(void *ticket)
{
	malloc_trim(0); /* returns thousands of small pieces to the system */
	gate_leave(ticket);
}

/* False: no place in time, or nobody needs the response any more. */
static bool wait_for_place(struct api_call *c)
{
	int64_t now = clock_mono_ms(), until = now + GATE_WAIT_MS;
	bool in;

	do {
		in = gate_wait(&c->body_place,
			       now + GATE_CHECK_MS < until ? now + GATE_CHECK_MS : until);
		now = clock_mono_ms();
	} while (!in && now < until && !api_is_draining(c->api) && !http_is_gone(c->rq));
	return in;
}

/* Bodies of tens of megabytes, and responses made of as much, take four times their size in memory.
 * No body is read before the request is inside. */
int body_gate_enter(struct api_call *c, struct err *err)
{
	struct gate_ticket *t = &c->body_place;

	if (t->gate)
		return 0;
	(void)gate_join(&c->api->body_gate, t,
			&(struct gate_request){ .tenant = c->caller.tenant });
	if (!wait_for_place(c)) {
		gate_leave(t);
		return err_set(err, ERR_UNAVAILABLE, "too many large requests at once; try again");
	}
	return arena_keep(c->arena, t, leave_gate) ? 0
						   : err_set(err, ERR_UNAVAILABLE, "out of memory");
}

/* ---- body ------------------------------------------------------------------------------------ */

static void drop_json(void *j)
{
	json_decref(j);
}

/* Only a valid key counts. Browsers add none of these headers on their own, except for Basic
 * credentials, which are no key; a page that sets one needs a preflight request. */
static bool has_key_in_header(const struct api_call *c)
{
	return c->pass && (http_header(c->rq, "Authorization") || http_header(c->rq, "X-Api-Key"));
}

/* A browser sends forms, plain text and untyped bytes cross-site without a preflight request, but
 * not JSON. Where untyped bytes are taken, origin_check() alone refuses other pages. Clients that
 * set no type send a text as text/plain (fetch) or as a form (curl): those need a key. */
static bool is_json(const struct api_call *c, const char *type)
{
	static const char json[] = "application/json", multipart[] = "multipart/";
	size_t n = sizeof(json) - 1;

	if (!type)
		return c->surface->untyped_json;
	if (c->surface->untyped_json && has_key_in_header(c))
		return strncasecmp(type, multipart, sizeof(multipart) - 1) != 0;
	if (strncasecmp(type, json, n) != 0)
		return false;
	type += n + strspn(type + n, " \t");
	return *type == '\0' || *type == ';';
}

static int fail_not_json(const char *type, struct err *err)
{
	return api_fail(err, ERR_INVALID, EMEDIUMTYPE,
			"Content-Type: %.60s, but the body must be JSON; send the header "
			"\"Content-Type: application/json\"",
			type ? type : "missing");
}

static bool is_large(const struct api_call *c, size_t max)
{
	return max > BODY_MAX &&
	       (http_body_length(c->rq) < 0 || http_body_length(c->rq) > BODY_MAX) &&
	       http_body_length(c->rq) <= (int64_t)max;
}

/* Of a body of unknown length, the most it may have. */
static int take_memory(struct api_call *c, size_t max, struct err *err)
{
	int64_t len = http_body_length(c->rq);

	if (len > (int64_t)max)
		return 0; /* it is refused for its own size */
	return api_take(c, TENANT_BODIES, len < 0 ? max : (uint64_t)len, err);
}

static int read_body(struct api_call *c, const char **ret, size_t *ret_len, struct err *err)
{
	const char *type = http_header(c->rq, "Content-Type");
	size_t max = BODY_MAX;

	if (http_body_length(c->rq) == 0) {
		*ret = "";
		*ret_len = 0;
		return 0;
	}
	if ((http_header(c->rq, "Content-Length") || http_header(c->rq, "Transfer-Encoding")) &&
	    !is_json(c, type))
		return fail_not_json(type, err);
	if (c->route->flags & API_LARGE_BODY)
		max = API_LARGE_BODY_MAX;
	if (take_memory(c, max, err) < 0 || (is_large(c, max) && body_gate_enter(c, err) < 0))
		return -1;
	if (http_body(c->rq, max, ret, ret_len, err) == 0)
		return 0;
	if (err->code == ERR_LIMIT)
		err->sys = EMSGSIZE;
	return -1;
}

bool api_has_name(const char *names, const char *name)
{
	size_t len = strlen(name), n;

	for (; *names; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		if (n == len && memcmp(names, name, n) == 0)
			return true;
	}
	return false;
}

static int check_fields(json_t *o, const char *fields, struct err *err)
{
	const char *name;
	json_t *ignored;

	json_object_foreach (o, name, ignored)
		if (!api_has_name(fields, name))
			return err_set(err, ERR_INVALID, "unknown field \"%.64s\"", name);
	return 0;
}

bool body_is_shallow(const char *text, size_t len)
{
	size_t ignored;

	return json_is_shallow(text, len, &ignored);
}

/* A value of two bytes takes hundreds of bytes of memory while the request lasts, so a body with
 * many values counts as large. */
static int check_cost(struct api_call *c, const char *text, size_t len, struct err *err)
{
	size_t most = c->route->flags & API_LARGE_BODY ? VALUES_MAX : VALUES_FEW, values;

	if (!json_is_shallow(text, len, &values))
		return err_set(err, ERR_INVALID, "body: nested more than %d levels deep",
			       JSON_READ_DEPTH_MAX);
	if (values > most)
		return api_fail(err, ERR_LIMIT, EFBIG, "body: more than %zu values", most);
	return values > VALUES_FEW ? body_gate_enter(c, err) : 0;
}

int api_body(struct api_call *c, const char *fields, json_t **ret, struct err *err)
{
	size_t flags = JSON_REJECT_DUPLICATES;
	const char *text = "";
	json_error_t why;
	json_t *o;
	size_t len = 0;

	if (read_body(c, &text, &len, err) < 0 || check_cost(c, text, len, err) < 0)
		return -1;
	if (c->route->flags & API_LARGE_BODY)
		flags |= JSON_ALLOW_NUL;
	o = len ? json_loadb(text, len, flags, &why) : json_object();
	if (!o && !len)
		return err_sys(err, ENOMEM, "body");
	if (!o)
		return err_set(err, ERR_INVALID, "body, line %d, column %d: %.120s", why.line,
			       why.column,
			       json_error_code(&why) == json_error_null_character
				       ? "strings must not contain \\u0000"
				       : why.text);
	if (!arena_keep(c->arena, o, drop_json))
		return err_sys(err, ENOMEM, "body");
	if (!json_is_object(o))
		return err_set(err, ERR_INVALID, "body: must be an object");
	if (fields && check_fields(o, fields, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

/* ---- members --------------------------------------------------------------------------------- */

json_t *api_member(const json_t *o, const char *name)
{
	json_t *v = json_object_get(o, name);

	return json_is_null(v) ? NULL : v;
}

int api_str(const json_t *o, const char *name, const char **ret, struct err *err)
{
	const json_t *v = api_member(o, name);

	if (!v)
		return 0;
	if (!json_is_string(v))
		return err_set(err, ERR_INVALID, "%s: must be a string", name);
	if (strlen(json_string_value(v)) != json_string_length(v))
		return err_set(err, ERR_INVALID, "%s: must not contain a NUL", name);
	*ret = json_string_value(v);
	return 0;
}

static int set_int(int64_t n, const char *name, int64_t min, int64_t max, int64_t *ret,
		   struct err *err)
{
	if (n < min || n > max)
		return err_set(err, ERR_INVALID, "%s: must be between %lld and %lld", name,
			       (long long)min, (long long)max);
	*ret = n;
	return 0;
}

int api_int(const json_t *o, const char *name, int64_t min, int64_t max, int64_t *ret,
	    struct err *err)
{
	const json_t *v = api_member(o, name);

	if (!v)
		return 0;
	if (!json_is_integer(v))
		return err_set(err, ERR_INVALID, "%s: must be an integer", name);
	return set_int(json_integer_value(v), name, min, max, ret, err);
}

int api_bool(const json_t *o, const char *name, bool *ret, struct err *err)
{
	const json_t *v = api_member(o, name);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return err_set(err, ERR_INVALID, "%s: must be true or false", name);
	*ret = json_is_true(v);
	return 0;
}

int api_copy(const json_t *o, const char *name, char *ret, size_t size, struct err *err)
{
	const char *text = NULL;

	if (api_str(o, name, &text, err) < 0)
		return -1;
	if (text && (!*text || strlen(text) >= size))
		return err_set(err, ERR_INVALID, "%s: must be 1 to %zu bytes", name, size - 1);
	if (text)
		memcpy(ret, text, strlen(text) + 1);
	return 0;
}

int api_word(const char *name, const char *text, const char *no, const char *yes, bool *ret,
	     struct err *err)
{
	if (text && strcmp(text, no) != 0 && strcmp(text, yes) != 0)
		return err_set(err, ERR_INVALID, "%s: must be \"%s\" or \"%s\"", name, no, yes);
	if (text)
		*ret = strcmp(text, yes) == 0;
	return 0;
}

int api_choice(const json_t *o, const char *name, const char *no, const char *yes, bool *ret,
	       struct err *err)
{
	const char *text = NULL;

	return api_str(o, name, &text, err) < 0 ? -1 : api_word(name, text, no, yes, ret, err);
}

int api_query_int(struct api_call *c, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err)
{
	const char *text = http_query(c->rq, name);
	char *end;
	int64_t n;

	if (!text)
		return 0;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno || end == text || *end || strspn(text, "-0123456789") != strlen(text))
		return err_set(err, ERR_INVALID, "%s: must be an integer", name);
	return set_int(n, name, min, max, ret, err);
}

int api_query_unknown(const char *name, struct err *err)
{
	return err_set(err, ERR_INVALID, "unknown query parameter \"%.64s\"", name);
}

struct query_names {
	const char *names;
	struct err *err;
};

static int check_query_name(void *arg, const char *name, const char *value)
{
	const struct query_names *q = arg;

	(void)value;
	return api_has_name(q->names, name) ? 0 : api_query_unknown(name, q->err);
}

int api_query_check(struct api_call *c, const char *names, struct err *err)
{
	return http_query_each(c->rq, check_query_name, &(struct query_names){ names, err });
}

bool api_query_flag(struct api_call *c, const char *name)
{
	const char *v = http_query(c->rq, name);

	return v && strcmp(v, "0") != 0 && strcmp(v, "false") != 0;
}

int api_query_tenant(struct api_call *c, const char **ret, struct err *err)
{
	const char *asked = http_query(c->rq, "tenant");

	*ret = asked ? asked : c->caller.tenant;
	if (!**ret)
		return err_set(err, ERR_INVALID, "tenant: empty");
	if (c->scope != API_ADMIN && strcmp(*ret, c->caller.tenant) != 0)
		return err_set(err, ERR_DENIED,
			       "tenant: another one than that of the key requires a key with scope "
			       "\"admin\"");
	return 0;
}

int api_page(struct api_call *c, struct store_page *ret, struct err *err)
{
	int64_t limit = PAGE_DEFAULT, after = 0;

	if (api_query_int(c, "limit", 1, STORE_PAGE_MAX, &limit, err) < 0 ||
	    api_query_int(c, "after", 0, INT64_MAX, &after, err) < 0)
		return -1;
	*ret = (struct store_page){ .after = after, .limit = (unsigned)limit };
	return 0;
}

/* ---- responses ------------------------------------------------------------------------------- */

void api_out(struct json_out *j)
{
	json_out_init(j, REPLY_MAX);
}

void api_object(struct json_out *j)
{
	api_out(j);
	json_out_object(j, NULL);
}

char *api_line(struct json_out *j, size_t *ret_len)
{
	char *text;

	while (j->depth)
		json_out_end(j);
	text = json_out_take(j, ret_len);
	if (text)
		text[(*ret_len)++] = '\n'; /* replaces the NUL */
	return text;
}

int api_reply(struct api_call *c, unsigned status, struct json_out *j, struct err *err)
{
	size_t len;
	auto_free char *text = api_line(j, &len);

	if (!text)
		return err_sys(err, ENOMEM, "response");
	http_reply(c->rq, status, "application/json", text, len);
	return 0;
}

void api_list(struct json_out *j, const char *name)
{
	api_object(j);
	json_out_array(j, name);
}

void api_list_end(struct json_out *j, int64_t next)
{
	json_out_end(j);
	json_out_i64_if(j, "next", next, next);
}
