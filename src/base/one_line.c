/* SPDX-License-Identifier: Apache-2.0 */
#include "base/one_line.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Length of a tag such as "<p>", "</p>" or "<!-- -->"; 0 if there is none, as in "a < b". */
static size_t tag_len(const char *s)
{
	const char *end;

	if (*s != '<' || !(isalpha((unsigned char)s[1]) || s[1] == '/' || s[1] == '!'))
		return 0;
	end = strchr(s, '>');
	return end ? (size_t)(end - s) + 1 : 0;
}

/* Length of a blank or of a control character that a terminal might interpret; 0 if there is none.
 * U+0080 to U+009F have two bytes. */
static size_t blank_len(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;

	if (*b <= ' ' || *b == 127)
		return 1;
	return b[0] == 0xc2 && b[1] >= 0x80 && b[1] < 0xa0 ? 2 : 0;
}

/* Cuts a text, but not within a multi-byte character. */
static void cut_text(char *text, size_t at)
{
	while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	memcpy(text + at, "...", sizeof("..."));
}

void one_line_print(const char *text, char *ret, size_t size)
{
	size_t n = 0;
	bool blank = false;

	while (*text) {
		size_t tag = tag_len(text), skip = tag ? tag : blank_len(text);

		if (*text == '\n' && n)
			break;
		if (skip) {
			blank = true;
			text += skip;
			continue;
		}
		if (n + 3 > size) { /* space for a blank, a character and the end */
			cut_text(ret, size - sizeof("..."));
			return;
		}
		if (blank && n)
			ret[n++] = ' ';
		blank = false;
		ret[n++] = *text++;
	}
	ret[n] = '\0';
}
