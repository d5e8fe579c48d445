/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of programs and their verdicts: known false positives and negatives. */
#include <stdlib.h>

#include "base/array.h"
#include "shell/program_rules.h"
#include "tap.h"

static const char allowing[] = "{\"allow\":[\"ls\",\"git\",\"bash\",\"env\",\"xargs\",\"a\","
			       "\"/opt/tool\"],\"reason\":\"ask us\"}";

/* 1: allowed; 0: denied; -1: the text is invalid. */
static int verdict(const char *rules, const char *text)
{
	struct shell_rules r = { 0 };
	struct shell_words w = { 0 };
	struct err err;
	int answer = -1;

	if (shell_rules_parse(rules, strlen(rules), &r, &err) < 0)
		return -2;
	if (shell_parse(text, strlen(text), &w, &err) == 0)
		answer = !shell_refused(&r, &w);
	shell_words_fini(&w);
	shell_rules_fini(&r);
	return answer;
}

static void the_known_traps_are_refused(void)
{
	static const char *const refused[] = {
		"echo hi;xyz",
		"echo a|xyz",
		"echo $(xyz)",
		"echo `xyz`",
		"a & xyz",
		"a\nxyz",
		"bash -c 'xyz'",
		"env xyz",
		"xargs xyz",
		"$X",
		"/tmp/ls",
		"./ls",
		"eval $x",
		"source f",
		"/bin/echo hi",
		"echo hi\nxyz",
		"tool",
		"(xyz)",
		"X=1 xyz",
		"ls|(xyz)",
		"ls;{ xyz; }",
		"! xyz",
		"xyz",
		"echo \"$(xyz)\"",
		"cat <<E\n$(xyz)\nE",
		"ls && xyz",
		"ls || xyz",
		"time xyz",
		"command xyz",
		"exec xyz",
		"echo <(xyz)",
		"trap xyz EXIT",
		"hash -p /x ls; ls a",
		"BASH_CMDS[ls]=/x; ls a",
		"x='$(a)'; echo ${x@P}",
		"PS4='$(a)'; set -x; :",
		"LD_PRELOAD=/x ls",
		"env LD_PRELOAD=/x ls",
		"env --split-string='xyz a'",
		"env --uns ls xyz",
		"bash +c xyz",
		"compgen -Cxyz x",
		"compgen -W'$(xyz)'",
		"mapfile -Cxyz a",
		"ls <<$'E'\nE\nxyz",
		"ls <<'a\\b'\na\\b\nxyz",
		"ls <<E\nxyz",
		"false && xyz() { :; }; xyz",
		"xyz() { :; }; bash -c xyz",
		"xyz() { :; }; unset -f $x; xyz",
	};

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		printf("# %s\n", refused[i]);
		CHECK(verdict(allowing, refused[i]) == 0);
	}
}

static void harmless_texts_are_allowed(void)
{
	static const char *const allowed[] = {
		"echo 'look at this'",
		"git init",
		"/bin/ls",
		"X=1 ls",
		"(ls)",
		"echo \"it's\"",
		"echo '|' xyz",
		"echo ';xyz'",
		"echo xyz",
		"ls # xyz",
		"bash -c 'ls'",
		"env ls",
		"xargs ls",
		"/opt/tool a",
		"ls xyz; git xyz",
		"f() { ls; }; f",
		"for xyz in xyz; do ls; done",
		"echo if xyz",
		"cd xyz && ls",
		"ls <<E\nxyz\nE",
		"git commit -m 'a; xyz | b'",
		"[ -f xyz ] || exit 1",
		"",
	};

	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		printf("# %s\n", allowed[i]);
		CHECK(verdict(allowing, allowed[i]) == 1);
	}
}

static void a_deny_list_allows_everything_else(void)
{
	static const char rules[] = "{\"deny\":[\"rm\",\"eval\"]}";
	static const char both[] = "{\"allow\":[\"ls\",\"rm\"],\"deny\":[\"rm\"]}";

	CHECK(verdict(rules, "ls; xyz") == 1);
	CHECK(verdict(rules, "rm x") == 0);
	CHECK(verdict(rules, "/bin/rm x") == 0);
	CHECK(verdict(rules, "/tmp/../bin/rm x") == 0);
	CHECK(verdict(rules, "echo rm") == 1);
	CHECK(verdict(rules, "$X") == 1);
	CHECK(verdict(rules, "hash -p /x ls; PS4=a") == 1);
	CHECK(verdict(rules, "eval ls") == 0);
	CHECK(verdict(rules, "bash -c 'find . -exec rm {} +'") == 0);
	CHECK(verdict(both, "ls") == 1);
	CHECK(verdict(both, "rm") == 0);
	CHECK(verdict("{}", "xyz $X") == 1);
	CHECK(verdict("{\"allow\":[]}", "ls") == 0);
	CHECK(verdict("{\"allow\":[]}", "echo") == 1);
	CHECK(verdict("{\"allow\":[\"source\"]}", "source f") == 1);
	CHECK(verdict("{\"allow\":[\"LD_PRELOAD\"]}", "LD_PRELOAD=/x; PS4=a") == 0);
	CHECK(verdict("{\"allow\":[\"LD_PRELOAD\"]}", "LD_PRELOAD=/x") == 1);
	CHECK(verdict("{\"allow\":[\"/bin/ls\"]}", "ls; /bin/ls") == 1);
	CHECK(verdict("{\"deny\":[\"/bin/ls\"]}", "ls") == 0);
	CHECK(verdict("{\"allow\":[\"/opt/ls\"]}", "ls") == 0);
}

static void rules_are_parsed_strictly_and_written_back(void)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "[]", "must be an object" },
		{ "{\"x\":1}", "x: unknown field" },
		{ "{\"allow\":1}", "allow: must be an array" },
		{ "{\"allow\":[1]}", "allow: must contain only names" },
		{ "{\"deny\":[\"a/b\"]}",
		  "deny: \"a/b\" must be a program name or an absolute path" },
		{ "{\"deny\":[\"\"]}", "deny: \"\" must be a program name or an absolute path" },
		{ "{\"allow\":[\"a:b\"]}",
		  "allow: \"a:b\" must be a program name or an absolute path" },
		{ "{\"allow\":[\"ls -la\"]}",
		  "allow: \"ls -la\" must be a program name or an absolute path" },
		{ "{\"allow\":[\" ls\"]}",
		  "allow: \" ls\" must be a program name or an absolute path" },
		{ "{\"allow\":[\"ls\\t\"]}",
		  "allow: \"ls?\" must be a program name or an absolute path" },
		{ "{\"reason\":1}", "reason: must be a string of at most 160 bytes" },
		{ "{\"enforce\":\"no\"}", "enforce: must be \"try\" or \"require\"" },
		{ "{\"enforce\":\"require\"}", "enforce: requires an allow list" },
	};
	struct shell_rules r = { 0 };
	struct err err;
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(shell_rules_parse(bad[i].text, strlen(bad[i].text), &r, &err) < 0);
		CHECK(err.code == ERR_INVALID);
		CHECK_STR(err.msg, bad[i].want);
	}
	CHECK(shell_rules_parse(allowing, strlen(allowing), &r, &err) == 0);
	text = shell_rules_print(&r);
	shell_rules_fini(&r);
	CHECK(text != NULL);
	CHECK_STR(text, allowing);
	free(text);
}

int main(void)
{
	RUN(the_known_traps_are_refused);
	RUN(harmless_texts_are_allowed);
	RUN(a_deny_list_allows_everything_else);
	RUN(rules_are_parsed_strictly_and_written_back);
	return tap_done();
}
