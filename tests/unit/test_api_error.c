/* SPDX-License-Identifier: Apache-2.0 */
/* The status and code of an error, and bodies without a request. */
#include <errno.h>
#include <jansson.h>

#include "api/core/internal.h"
#include "sandbox/guest_exec.h"
#include "engine/internal.h"
#include "tap.h"

static struct err err;

static bool is(enum err_code code, int sys, unsigned status, const char *name, bool retryable)
{
	struct err e = { .code = code, .sys = sys };

	return api_status(&e) == status && strcmp(api_error_code(&e), name) == 0 &&
	       api_error_is_retryable(&e) == retryable;
}

static void each_class_has_its_status(void)
{
	CHECK(is(ERR_INVALID, 0, 400, "INVALID", false));
	CHECK(is(ERR_INVALID, ENOTDIR, 400, "INVALID", false));
	CHECK(is(ERR_NOT_FOUND, ENOENT, 404, "NOT_FOUND", false));
	CHECK(is(ERR_CONFLICT, EBUSY, 409, "CONFLICT", false));
	CHECK(is(ERR_DENIED, EACCES, 403, "DENIED", false));
	CHECK(is(ERR_LIMIT, 0, 429, "LIMIT", false));
	CHECK(is(ERR_TIMEOUT, ETIMEDOUT, 504, "TIMEOUT", true));
	CHECK(is(ERR_UNAVAILABLE, EAGAIN, 503, "UNAVAILABLE", true));
	CHECK(is(ERR_INTERNAL, EIO, 500, "INTERNAL", false));
	CHECK(is(ERR_NONE, 0, 500, "INTERNAL", false)); /* unknown cause */
}

static void some_causes_have_their_own_status(void)
{
	CHECK(is(ERR_NOT_FOUND, ESTALE, 410, "GONE", false));
	CHECK(is(ERR_LIMIT, GUEST_EXEC_NO_PIDS, 429, "LIMIT_PIDS", true));
	CHECK(is(ERR_LIMIT, GUEST_EXEC_NO_OUTPUT, 429, "LIMIT_OUTPUT", true));
	CHECK(is(ERR_LIMIT, GUEST_EXEC_NO_MEMORY, 429, "LIMIT_MEMORY", false));
	CHECK(is(ERR_LIMIT, EAGAIN, 503, "UNAVAILABLE", true)); /* a limit of the host */
	CHECK(is(ERR_DENIED, ENOKEY, 401, "UNAUTHENTICATED", false));
	CHECK(is(ERR_DENIED, EKEYREJECTED, 401, "UNAUTHENTICATED", false));
	CHECK(is(ERR_DENIED, EKEYEXPIRED, 401, "UNAUTHENTICATED", false));
	CHECK(is(ERR_DENIED, EADDRNOTAVAIL, 421, "MISDIRECTED", false));
	CHECK(is(ERR_INVALID, EMEDIUMTYPE, 415, "UNSUPPORTED_MEDIA_TYPE", false));
	CHECK(is(ERR_INVALID, EOPNOTSUPP, 405, "METHOD_NOT_ALLOWED", false));
	CHECK(is(ERR_LIMIT, EMSGSIZE, 413, "TOO_LARGE", false));
	CHECK(is(ERR_LIMIT, ERANGE, 416, "OUTPUT_GONE", false));
	CHECK(is(ERR_LIMIT, ENOSPC, 507, "LIMIT_DISK", false));
	CHECK(is(ERR_LIMIT, EDQUOT, 507, "LIMIT_DISK", false));
	CHECK(is(ERR_LIMIT, EUSERS, 429, "RATE_LIMITED", true));
	CHECK(is(ERR_LIMIT, ENOMEM, 503, "UNAVAILABLE", true));
}

static void paths_of_the_host_are_hidden(void)
{
	err_set(&err, ERR_LIMIT,
		"copy '/srv/lodge/a/b' to /srv/lodge/c: /tmp/x: No space left on device");
	api_error_hide_paths(&err, "/srv/lodge");
	CHECK_STR(err.msg, "copy 'a file of the server' to a file of the server: /tmp/x: "
			   "No space left on device");
	api_error_hide_paths(&err, "");
	for (size_t i = 0; i < sizeof(err.msg) - 1; i++) /* longer than its place */
		err.msg[i] = "/d "[i % 3];
	api_error_hide_paths(&err, "/d");
	CHECK(!strstr(err.msg, "/d") && strlen(err.msg) < sizeof(err.msg));
}

static void members_have_types(void)
{
	json_t *o = json_pack("{s:s, s:i, s:b, s:n}", "s", "text", "i", 7, "b", 1, "n");
	const char *s = "kept";
	int64_t i = 1;
	bool b = false, right;

	right = api_str(o, "s", &s, &err) == 0 && !strcmp(s, "text") &&
		api_int(o, "i", 1, 7, &i, &err) == 0 && i == 7 && api_bool(o, "b", &b, &err) == 0 &&
		b;
	right = right && api_str(o, "n", &s, &err) == 0 && !strcmp(s, "text") &&
		api_int(o, "absent", 0, 0, &i, &err) == 0 && i == 7;
	right = right && api_str(o, "i", &s, &err) < 0 && api_int(o, "s", 0, 9, &i, &err) < 0 &&
		api_bool(o, "i", &b, &err) < 0 && api_int(o, "i", 8, 9, &i, &err) < 0;
	json_decref(o);
	CHECK(right && err.code == ERR_INVALID);
	CHECK_STR(err.msg, "i: must be between 8 and 9");
}

static bool spec(const char *text, struct template *ret)
{
	json_t *o = json_loads(text, 0, NULL);
	int r = api_take_spec(o, ret, &err);

	json_decref(o);
	return r == 0;
}

static void a_valid_spec_is_accepted(void)
{
	struct template t;
	bool right = spec("{\"limits\":{\"cpus\":0.25,\"pids\":9},\"env\":{\"A\":\"b=c\"},"
			  "\"run_as\":\"7\",\"workdir\":\"/w\",\"class\":\"root\"}",
			  &t) &&
		     t.limits.cpu_milli == 250 && t.limits.pids == 9 && t.nenv == 1 &&
		     !strcmp(t.env[0], "A=b=c") && !strcmp(t.user, "7") &&
		     !strcmp(t.workdir, "/w") && t.class == KEEPER_CLASS_ROOT;

	template_fini(&t);
	CHECK(right);
}

static void a_bad_spec_is_refused(void)
{
	static const char *const bad[] = {
		"{\"limits\":[]}",
		"{\"limits\":{\"cpus\":-1}}",
		"{\"limits\":{\"cpus\":0.0001}}",
		"{\"limits\":{\"cpus\":1e300}}",
		"{\"limits\":{\"memory_bytes\":-5}}",
		"{\"limits\":{\"memory_bytes\":1.5}}",
		"{\"limits\":{\"nothing\":1}}",
		"{\"env\":[\"A=b\"]}",
		"{\"env\":{\"\":\"b\"}}",
		"{\"env\":{\"A=\":\"b\"}}",
		"{\"env\":{\"A\":1}}",
		"{\"class\":\"god\"}",
		"{\"workdir\":1}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct template t;
		bool taken = spec(bad[i], &t);

		template_fini(&t);
		CHECK(!taken && err.code == ERR_INVALID);
	}
}

static void a_session_is_shown(void)
{
	struct store_binding keys[] = { { "thread", "t" }, { "key", "k\"1" } };
	struct store_session s = { .id = "ses_1",
				   .state = SESSION_ACTIVE,
				   .bindings = keys,
				   .nbindings = 2,
				   .template = "host",
				   .memory_bytes = 5 };
	char meta[] = "{\"a\":[1.5]}", limits[] = "{\"limits\":{\"cpu_milli\":1500}}";
	struct api_call call = { .engine = calloc(1, sizeof(struct engine)) };
	struct json_out j;
	char *text;
	json_t *o;
	bool right;

	s.metadata = meta;
	s.spec = limits;
	api_out(&j);
	api_put_session(&call, &j, NULL, &s);
	text = json_out_take(&j, NULL);
	o = json_loads(text, 0, NULL);
	free(text);
	right = !strcmp(json_string_value(json_object_get(o, "key")), "k\"1") &&
		!strcmp(json_string_value(json_object_get(o, "thread")), "t") &&
		!strcmp(json_string_value(json_object_get(o, "state")), "active") &&
		json_is_null(json_object_get(o, "user")) &&
		json_is_null(json_object_get(o, "cause")) &&
		json_real_value(json_object_get(json_object_get(o, "limits"), "cpus")) == 1.5 &&
		json_integer_value(json_object_get(json_object_get(o, "limits"), "pids")) == 256 &&
		json_is_array(json_object_get(json_object_get(o, "metadata"), "a"));
	json_decref(o);
	free(call.engine);
	CHECK(right);
}

int main(void)
{
	RUN(each_class_has_its_status);
	RUN(some_causes_have_their_own_status);
	RUN(paths_of_the_host_are_hidden);
	RUN(members_have_types);
	RUN(a_valid_spec_is_accepted);
	RUN(a_bad_spec_is_refused);
	RUN(a_session_is_shown);
	return tap_done();
}
