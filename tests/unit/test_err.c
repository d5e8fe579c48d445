/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "tap.h"

static void an_error_is_one_line(void)
{
	struct err err;

	CHECK(err_set(&err, ERR_INVALID, "--memory: %s", "what") == -1);
	CHECK(err.code == ERR_INVALID && err.sys == 0);
	CHECK_STR(err.msg, "--memory: what");
}

static void a_system_error_has_its_reason(void)
{
	struct err err;

	CHECK(err_sys(&err, ENOENT, "open %s", "/x") == -1);
	CHECK(err.code == ERR_NOT_FOUND && err.sys == ENOENT);
	CHECK_STR(err.msg, "open /x: No such file or directory");
}

static void errno_has_a_class(void)
{
	static const struct {
		int sys;
		enum err_code code;
	} of[] = {
		{ EINVAL, ERR_INVALID },    { ENAMETOOLONG, ERR_INVALID }, { ESRCH, ERR_NOT_FOUND },
		{ EEXIST, ERR_CONFLICT },   { EPERM, ERR_DENIED },	   { EROFS, ERR_DENIED },
		{ ENOMEM, ERR_LIMIT },	    { EDQUOT, ERR_LIMIT },	   { EMFILE, ERR_LIMIT },
		{ ETIMEDOUT, ERR_TIMEOUT }, { EIO, ERR_INTERNAL },
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		err_sys(&err, of[i].sys, "x");
		CHECK(err.code == of[i].code);
	}
}

static void context_comes_before_the_cause(void)
{
	struct err err;

	err_sys(&err, ENOENT, "memory.max");
	CHECK(err_ctx(&err, "cgroup %s", "box") == -1);
	CHECK_STR(err.msg, "cgroup box: memory.max: No such file or directory");
	CHECK(err.code == ERR_NOT_FOUND && err.sys == ENOENT);
}

static void a_long_message_is_truncated_and_terminated(void)
{
	struct err err;
	char text[2 * sizeof(err.msg)];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	err_set(&err, ERR_INTERNAL, "%s", text);
	CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
	err_sys(&err, EIO, "%s", text);
	CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
	for (int i = 0; i < 200; i++)
		err_ctx(&err, "step %d", i);
	CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
	CHECK(strncmp(err.msg, "step 199: step 198: ", 20) == 0);
}

int main(void)
{
	RUN(an_error_is_one_line);
	RUN(a_system_error_has_its_reason);
	RUN(errno_has_a_class);
	RUN(context_comes_before_the_cause);
	RUN(a_long_message_is_truncated_and_terminated);
	return tap_done();
}
