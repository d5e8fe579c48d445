/* SPDX-License-Identifier: Apache-2.0 */
/* The public API, as a program outside would use it. */
#include <lodge.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static char home[] = "/var/tmp/lodge-lib-XXXXXX";
static struct lodge *lodge;
static struct lodge_sandbox *sb;

static bool start(void)
{
	return lodge || (lodge_open(home, &lodge) == 0 && lodge_create(lodge, NULL, &sb) == 0);
}

static void errors_are_told(void)
{
	struct lodge *l = NULL;

	CHECK(lodge_open("/proc/no/such", &l) == -1 && !l);
	CHECK(lodge_last_code() != LODGE_OK && strstr(lodge_last_error(), "/proc/no"));
	CHECK(lodge_version()[0]);
	lodge_close(NULL);
	CHECK(lodge_destroy(NULL) == 0);
}

static void commands_run(void)
{
	const char *const argv[] = { "tr", "a-z", "A-Z", NULL };
	const char *const env[] = { "WHO=me", NULL };
	struct lodge_command c = { .argv = argv, .input = "abc", .input_len = 3 };
	struct lodge_result r;

	if (!start())
		SKIP("needs a machine where sandboxes work");
	CHECK(lodge_id(sb)[0]);
	CHECK(lodge_exec(sb, &c, &r) == 0 && r.code == 0);
	CHECK_STR(r.out, "ABC");
	lodge_result_fini(&r);
	c = (struct lodge_command){ .text = "echo $WHO; pwd; echo no >&2; exit 3",
				    .env = env,
				    .cwd = "/usr" };
	CHECK(lodge_exec(sb, &c, &r) == 0 && r.code == 3);
	CHECK_STR(r.out, "me\n/usr\n");
	CHECK_STR(r.err, "no\n");
	lodge_result_fini(&r);
	c = (struct lodge_command){ .text = "sleep 9", .timeout_ms = 100 };
	CHECK(lodge_exec(sb, &c, &r) == 0 && r.hits & LODGE_HIT_TIME && r.signal == 9);
	lodge_result_fini(&r);
	c = (struct lodge_command){ .text = "seq 10000", .output_bytes = 4096 };
	CHECK(lodge_exec(sb, &c, &r) == 0 && r.hits & LODGE_HIT_OUTPUT && r.out_total == 48894);
	lodge_result_fini(&r);
	c = (struct lodge_command){ .argv = (const char *const[]){ "/no/such", NULL } };
	CHECK(lodge_exec(sb, &c, &r) == -1 && lodge_last_code() == LODGE_NOT_FOUND);
	c = (struct lodge_command){ 0 };
	CHECK(lodge_exec(sb, &c, &r) == -1 && lodge_last_code() == LODGE_INVALID);
}

static void files_are_carried(void)
{
	void *data = NULL;
	size_t len;

	if (!start())
		SKIP("needs a machine where sandboxes work");
	CHECK(lodge_write_file(sb, "a/b/f", "x\0y", 3, 0) == 0);
	CHECK(lodge_read_file(sb, "a/b/f", 100, &data, &len) == 0);
	CHECK(len == 3 && !memcmp(data, "x\0y", 3));
	free(data);
	CHECK(lodge_read_file(sb, "no", 100, &data, &len) == -1);
	CHECK(lodge_last_code() == LODGE_NOT_FOUND);
}

static void specs_are_checked(void)
{
	struct lodge_spec spec = { .memory_bytes = 1 };
	struct lodge_sandbox *no = NULL;

	if (!start())
		SKIP("needs a machine where sandboxes work");
	CHECK(lodge_create(lodge, &spec, &no) == -1 && lodge_last_code() == LODGE_INVALID);
	spec = (struct lodge_spec){ .template_name = "no-such" };
	CHECK(lodge_create(lodge, &spec, &no) == -1 && lodge_last_code() == LODGE_NOT_FOUND);
	spec = (struct lodge_spec){ .template_name = "../x" };
	CHECK(lodge_create(lodge, &spec, &no) == -1 && !no);
	spec = (struct lodge_spec){ .memory_bytes = 64 << 20, .pids = 50, .cpu_milli = 500 };
	CHECK(lodge_create(lodge, &spec, &no) == 0 && lodge_destroy(no) == 0);
}

int main(void)
{
	char cmd[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(home))
		return 1;
	RUN(errors_are_told);
	RUN(commands_run);
	RUN(files_are_carried);
	RUN(specs_are_checked);
	lodge_destroy(sb);
	lodge_close(lodge);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", home);
	if (system(cmd) != 0)
		printf("# %s stays\n", home);
	return tap_done();
}
