/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/template.h"
#include "sandbox/template/template_json.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "tap.h"
#include "tmp_name.h"

static int parse(const char *text, struct template *t, struct err *err)
{
	return template_parse("t.json", text, strlen(text), t, err);
}

static void everything_is_read(void)
{
	struct template t;
	struct err err;

	CHECK(parse("{\"user\":\"1000:100\",\"workdir\":\"/w\",\"env\":[\"A=1\",\"B=\"],\"class\":"
		    "\"root\",\"demand\":[\"disk\"],\"limits\":{\"memory_bytes\":67108864,\"pids\":"
		    "9}}",
		    &t, &err) == 0);
	CHECK_STR(t.user, "1000:100");
	CHECK_STR(t.workdir, "/w");
	CHECK(t.nenv == 2 && !t.env[2]);
	CHECK_STR(t.env[1], "B=");
	CHECK(t.class == KEEPER_CLASS_ROOT && t.demand == KEEPER_DEMAND_DISK);
	CHECK(t.limits.memory_bytes == 64 << 20 && t.limits.pids == 9);
	CHECK(t.limits.open_files == limits_default().open_files);
	template_fini(&t);
	CHECK(parse("{}", &t, &err) == 0 && !t.user && !t.limits_set);
	template_fini(&t);
}

static void the_source_is_stored(void)
{
	static const char text[] = "{\"policy\":\"one\",\"layer\":\"lay_x\",\"made\":{\"at\":7,"
				   "\"bytes\":9,\"from\":\"snapshot\",\"snapshot\":\"snp_x\"}}";
	struct template t, again;
	char *out = NULL;
	struct err err;

	CHECK(parse(text, &t, &err) == 0 && template_print(&t, &out, &err) == 0);
	CHECK(parse(out, &again, &err) == 0 && again.made.at == 7 && again.made.bytes == 9);
	CHECK_STR(again.policy, "one");
	CHECK_STR(again.layer, "lay_x");
	CHECK_STR(again.made.from, "snapshot");
	CHECK_STR(again.made.snapshot, "snp_x");
	free(out);
	template_fini(&t);
	CHECK(parse("{\"made\":{\"by\":1}}", &t, &err) == -1 && strstr(err.msg, "made.by"));
	template_fini(&t);
	CHECK(template_merge(&again, &t, &err) == 0); /* an empty template changes nothing */
	CHECK_STR(again.policy, "one");
	template_fini(&again);
}

static void limits_are_capped(void)
{
	struct template t, most;
	struct err err;

	template_init(&t);
	template_init(&most);
	CHECK(!template_exceeded_limit(&t, &most) && template_cap(&t, &most, &err) == 0 &&
	      !t.limits_set);
	CHECK(template_set_limit(&most, "pids", 20, &err) == 0);
	CHECK(template_set_limit(&most, "cpu_milli", 500, &err) == 0);
	CHECK(!template_exceeded_limit(&t, &most)); /* no limits were requested */
	CHECK(template_set_limit(&t, "pids", 21, &err) == 0);
	CHECK_STR(template_exceeded_limit(&t, &most), "pids");
	CHECK(template_cap(&t, &most, &err) == 0 && t.limits.pids == 20);
	CHECK(t.limits.cpu_milli == 500); /* 0 means unlimited */
	CHECK(!template_exceeded_limit(&t, &most));
	CHECK(template_set_limit(&t, "pids", 4, &err) == 0 && template_cap(&t, &most, &err) == 0);
	CHECK(t.limits.pids == 4);
	template_fini(&t);
	template_fini(&most);
}

static void output_fits_the_memory(void)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct template t;
	struct err err;

	/* stored by an older version */
	CHECK(parse("{\"limits\":{\"output_bytes\":1099511627776}}", &t, &err) == 0);
	CHECK(t.limits.output_bytes == LIMITS_OUTPUT_MAX && template_has_limit(&t, "output_bytes"));
	CHECK(!template_has_limit(&t, "memory_bytes") && !template_has_limit(&t, "nonsense"));
	CHECK(template_set_limit(&t, "memory_bytes", 32 << 20, &err) == 0);
	CHECK(template_apply(&t, &spec, &err) == 0 && spec.limits.output_bytes == 8 << 20);
	CHECK(template_set_limit(&t, "output_bytes", LIMITS_OUTPUT_MAX + 1, &err) == -1);
	CHECK(strstr(err.msg, "output_bytes") && strstr(err.msg, "64M"));
	template_fini(&t);
}

static void mistakes_are_named(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "t.json:1:" },
		{ "[]", "not an object" },
		{ "{\"user\":1}", "\"user\" must be a string" },
		{ "{\"colour\":1}", "unknown key \"colour\"" },
		{ "{\"user\":\"a\",\"user\":\"b\"}", "duplicate" },
		{ "{\"env\":[\"A\"]}", "is not NAME=VALUE" },
		{ "{\"env\":\"A=b\"}", "\"env\" must be an array" },
		{ "{\"class\":\"king\"}", "\"class\" must be" },
		{ "{\"demand\":[\"money\"]}", "\"demand\" must be" },
		{ "{\"limits\":{\"memory_bytes\":1}}", "memory_bytes: must be between 4M and 16T" },
		{ "{\"limits\":{\"memory_bytes\":-1}}", "\"memory_bytes\" must be a whole number" },
		{ "{\"limits\":{\"pids\":99999999999}}", "pids: value too large" },
		{ "{\"limits\":{\"fuel\":1}}", "unknown limit \"fuel\"" },
	};
	struct template t;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK(parse(cases[i].text, &t, &err) == -1);
		CHECK(err.code == ERR_INVALID);
		if (!strstr(err.msg, cases[i].want))
			CHECK_STR(err.msg, cases[i].want);
		template_fini(&t);
	}
}

static void later_variables_replace_earlier_ones(void)
{
	struct template t;
	struct err err;

	template_init(&t);
	CHECK(template_set_env(&t, "A=1", &err) == 0 && template_set_env(&t, "AB=2", &err) == 0);
	CHECK(template_set_env(&t, "A=3", &err) == 0 && t.nenv == 2);
	CHECK_STR(t.env[0], "A=3");
	CHECK_STR(t.env[1], "AB=2");
	for (int i = 0; i < TEMPLATE_ENV_MAX - 2; i++) {
		char text[32];

		snprintf(text, sizeof(text), "V%d=x", i);
		CHECK(template_set_env(&t, text, &err) == 0);
	}
	CHECK(template_set_env(&t, "ONE=more", &err) == -1 && err.code == ERR_LIMIT);
	CHECK(!t.env[TEMPLATE_ENV_MAX]);
	template_fini(&t);
}

static void users(void)
{
	uint32_t u = 5, g = 5;
	struct err err;

	CHECK(template_parse_user("12", &u, &g, &err) == 1 && u == 12 && g == 12);
	CHECK(template_parse_user("12:13", &u, &g, &err) == 1 && u == 12 && g == 13);
	CHECK(template_parse_user("name", &u, &g, &err) == 0 && u == 12);
	CHECK(template_parse_user("99999999999999999999", &u, &g, &err) == -1);
	CHECK(template_parse_user("70000", &u, &g, &err) == -1);
	CHECK(template_parse_user("65535", &u, &g, &err) == -1);
	CHECK(template_parse_user("1:65530", &u, &g, &err) == -1);
	CHECK_STR(err.msg, "user \"1:65530\": this id is reserved");
	CHECK(template_parse_user("1:", &u, &g, &err) == -1);
	CHECK(template_parse_user("1:2:3", &u, &g, &err) == -1);
	CHECK(u == 12 && g == 13);
}

static void merged_settings_override(void)
{
	struct template base, over;
	struct sandbox_spec spec = sandbox_spec_default();
	struct err err;

	CHECK(parse("{\"user\":\"33\",\"env\":[\"A=1\",\"B=1\"],\"limits\":{\"pids\":9,"
		    "\"open_files\":99}}",
		    &base, &err) == 0);
	CHECK(parse("{\"env\":[\"A=2\"],\"limits\":{\"pids\":10}}", &over, &err) == 0);
	CHECK(template_merge(&base, &over, &err) == 0);
	CHECK_STR(base.env[0], "A=2");
	CHECK(template_set_string(&base.workdir, "/not//normal", &err) == 0);
	CHECK(template_apply(&base, &spec, &err) == 0 && !spec.workdir);
	CHECK(template_set_string(&base.workdir, "/app", &err) == 0);
	CHECK(template_apply(&base, &spec, &err) == 0);
	CHECK_STR(spec.workdir, "/app");
	CHECK(spec.uid == 33 && spec.gid == 33 && spec.class == KEEPER_CLASS_USER);
	CHECK(spec.limits.pids == 10 && spec.limits.open_files == 99);
	CHECK(spec.limits.memory_bytes == limits_default().memory_bytes);
	over.class = KEEPER_CLASS_ROOT;
	CHECK(template_merge(&base, &over, &err) == 0 && !base.user);
	CHECK(template_apply(&base, &spec, &err) == 0 && spec.uid == 0);
	template_fini(&base);
	template_fini(&over);
}

static int count(void *arg, const char *name)
{
	(void)name;
	++*(int *)arg;
	return 0;
}

static void a_saved_template_can_be_loaded(void)
{
	char home[TMP_NAME_SIZE];
	struct template t, again;
	struct err err;
	int n = 0;

	CHECK(mkdtemp(tmp_name(home, "lodge-test")) != NULL);
	CHECK(template_load(home, "mine", &again, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(template_load(home, "host", &again, &err) == 0);
	CHECK(template_each(home, count, &n, &err) == 0 && n == 0);
	CHECK(parse("{\"user\":\"u\",\"env\":[\"A=\xc3\xa4\"],\"limits\":{\"pids\":9}}", &t,
		    &err) == 0);
	CHECK(template_save(home, "mine", &t, &err) == 0);
	CHECK(template_save(home, "../x", &t, &err) == -1);
	CHECK(template_load(home, "mine", &again, &err) == 0);
	CHECK_STR(again.env[0], "A=\xc3\xa4");
	CHECK(again.limits_set == t.limits_set && again.limits.pids == 9);
	template_fini(&again);
	CHECK(template_set_env(&t, "BAD=\xff", &err) == 0);
	CHECK(template_save(home, "mine", &t, &err) == -1); /* not UTF-8: the old one stays */
	CHECK(template_load(home, "mine", &again, &err) == 0);
	template_fini(&again);
	CHECK(template_each(home, count, &n, &err) == 0 && n == 1);
	CHECK(template_remove(home, "mine", &err) == 0 && template_remove(home, "mine", &err) == 0);
	CHECK(template_load(home, "mine", &again, &err) == -1);
	template_fini(&t);
	snprintf(err.msg, sizeof(err.msg), "%s/templates", home);
	CHECK(rmdir(err.msg) == 0 && rmdir(home) == 0);
}

int main(void)
{
	RUN(everything_is_read);
	RUN(the_source_is_stored);
	RUN(limits_are_capped);
	RUN(output_fits_the_memory);
	RUN(mistakes_are_named);
	RUN(later_variables_replace_earlier_ones);
	RUN(users);
	RUN(merged_settings_override);
	RUN(a_saved_template_can_be_loaded);
	return tap_done();
}
