/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts are accepted as the URL of a repository. */
#include "api/chat/chat_repo.h"
#include "tap.h"

static void usual_urls_are_accepted(void)
{
	static const char *const good[] = {
		"https://github.com/a/b",
		"https://github.com/a/b.git",
		"http://localhost:8080/x",
		"https://user:word@host.example/a?b#c",
		"ssh://git@host.example/a/b",
		"ssh://host:22/~a/b",
		"git://host/a",
		"git@github.com:a/b.git",
		"me@my_host-1:b",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(chat_is_repository(good[i]));
}

static void invalid_urls_are_refused(void)
{
	static const char *const bad[] = { "",
					   "x",
					   "/a/b",
					   "file:///a/b",
					   "https://",
					   "https://host",
					   "https://host/",
					   "https:///a",
					   "https://@h/a",
					   "https://u@/a",
					   "https://-h/a",
					   "https://-u@h/a",
					   "https://h:/a",
					   "https://h:port/a",
					   "https://h:1:2/a",
					   "https://h:123456/a",
					   "https://h /a",
					   "https://h/a b",
					   "https://h/\x80",
					   "https://h?/a",
					   "HTTPS://h/a",
					   "ext::sh -c x",
					   "ext::sh/x",
					   "--upload-pack=x",
					   "-u@host:x",
					   "u@-host:x",
					   "u@host:-x",
					   "u@host:",
					   "u@host",
					   "@host:x",
					   "u@:x",
					   "https://h/a\n",
					   "https://[::1/a" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!chat_is_repository(bad[i]));
}

static void too_long_urls_are_refused(void)
{
	char url[4096] = "https://host/";

	memset(url + strlen(url), 'a', 2048 - strlen(url));
	CHECK(strlen(url) == 2048 && chat_is_repository(url));
	url[2048] = 'a';
	CHECK(!chat_is_repository(url));
}

int main(void)
{
	RUN(usual_urls_are_accepted);
	RUN(invalid_urls_are_refused);
	RUN(too_long_urls_are_refused);
	return tap_done();
}
