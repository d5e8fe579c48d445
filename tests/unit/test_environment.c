/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the captured environment: what is stored, and what never is. */
#include "template/environment_parse.h"

#include <stdlib.h>

#include "tap.h"

static struct err err;

static char *read_it(const char *text, size_t len)
{
	char *data = NULL;

	return environment_parse(text, len, "mark", &data, &err) == 0 ? data : NULL;
}

#define READ(text) read_it(text, sizeof(text) - 1)

static void names_of_secrets_are_recognized(void)
{
	static const char *const secret[] = { "API_KEY",     "aws_secret", "GITHUB_TOKEN",
					      "DB_PASSWORD", "PASSPHRASE", "MY_CREDENTIALS",
					      "Key",	     "xtokenx",	   "credential" };
	static const char *const plain[] = { "PATH", "HOME", "LANG", "USER", "SHELL", "KE_Y", "" };

	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		CHECK(environment_is_secret(secret[i]));
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		CHECK(!environment_is_secret(plain[i]));
}

static void the_report_becomes_an_object(void)
{
	char *data = READ("mark pwd\n/home/me\nmark kernel\nLinux 6.1 x86_64\n"
			  "mark os\n# a note\nID=debian\nVERSION_ID=\"12\"\nNAME='De bian'\n"
			  "mark tool git\ngit version 2.39\nmore\nmark tool perl\n"
			  "mark env\nPATH=/bin\0A=b=c\0API_TOKEN=hidden\0NL=x\ny\0\nmark end\n");

	CHECK(data);
	if (data)
		CHECK_STR(data, "{\"pwd\":\"/home/me\",\"kernel\":\"Linux 6.1 x86_64\","
				"\"os\":{\"id\":\"debian\",\"version_id\":\"12\",\"name\":\"De "
				"bian\"},"
				"\"env\":{\"PATH\":\"/bin\",\"A\":\"b=c\",\"API_TOKEN\":"
				"\"[redacted]\",\"NL\":\"x\\ny\"},"
				"\"tools\":{\"git\":\"git version 2.39\"}}");
	free(data);
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static void the_value_of_a_secret_is_nowhere(void)
{
	char *data = READ("mark pwd\n/\nmark kernel\nL\nmark env\nA_KEY=sesame\0"
			  "B_SECRET=sesame\0c_token=sesame\0D_PASS=sesame\0ECREDENTIALS=sesame\0"
			  "\nmark end\n");

	CHECK(data && !strstr(data, "sesame") && strstr(data, "A_KEY"));
	free(data);
	/* not even if its name is too long to be checked */
	data = READ("mark pwd\n/\nmark kernel\nL\nmark env\n" LONG LONG LONG "KEY=sesame\0"
		    "A=b\0\nmark end\n");
	CHECK(data && !strstr(data, "sesame") && strstr(data, "\"A\":\"b\""));
	free(data);
}

static void an_incomplete_report_is_refused(void)
{
	static const char *const half[] = {
		"",
		"nonsense",
		"mark pwd\n/\nmark kernel\nL\nmark env\nA=b\n",
		"mark pwd\n/\nmark kernel\nL\nmark end\n",
		"mark pwd\nmark kernel\nL\nmark env\nmark end\n",
		"mark pwd\n/\nmark env\nmark end\n",
		"mark end\n",
		"mark",
		"mark pwd",
	};

	for (size_t i = 0; i < sizeof(half) / sizeof(*half); i++) {
		char *data = read_it(half[i], strlen(half[i]));

		CHECK(!data && err.code == ERR_UNAVAILABLE);
		free(data);
	}
}

static void long_values_are_truncated(void)
{
	static char text[70000];
	int n = snprintf(text, sizeof(text), "mark pwd\n/\nmark kernel\nL\nmark tool git\n");
	char *data;

	memset(text + n, 'v', 1000);
	n += 1000;
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\nmark env\nLONG=");
	memset(text + n, 'x', 60000);
	n += 60000;
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\nmark end\n");
	data = read_it(text, (size_t)n);
	CHECK(data && strlen(data) < 5000);
	free(data);
}

int main(void)
{
	RUN(names_of_secrets_are_recognized);
	RUN(the_report_becomes_an_object);
	RUN(the_value_of_a_secret_is_nowhere);
	RUN(an_incomplete_report_is_refused);
	RUN(long_values_are_truncated);
	return tap_done();
}
