/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_name.h"

static const struct {
	const char *text;
	size_t len;
} names[HTTP1_NAME_COUNT] = {
#define NAME(name, text) [HTTP1_##name] = { text, sizeof(text) - 1 },
	HTTP1_NAMES(NAME)
#undef NAME
};

enum http1_name http1_name_find(struct http1_text t)
{
	for (unsigned i = 1; i < HTTP1_NAME_COUNT; i++) {
		/* Length and first letter differ for nearly all. */
		if (names[i].len == t.len && (t.s[0] | 0x20) == names[i].text[0] &&
		    http1_text_is(t, names[i].text))
			return (enum http1_name)i;
	}
	return HTTP1_OTHER;
}
