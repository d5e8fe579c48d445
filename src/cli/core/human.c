/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/human.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"

char *human_span(int64_t ms, char buf[HUMAN_TEXT])
{
	static const struct {
		int64_t s, below;
		char unit;
	} units[] = { { 86400, 3600, 'd' }, { 3600, 60, 'h' }, { 60, 1, 'm' } };
	long long s = ms > 0 ? (long long)ms / 1000 + (ms % 1000 >= 500) : 0;

	/* 119.5 minutes are printed as 2h, not as 120m */
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (s >= 2 * units[i].s - units[i].below / 2) {
			snprintf(buf, HUMAN_TEXT, "%lld%c", (s + units[i].s / 2) / units[i].s,
				 units[i].unit);
			return buf;
		}
	snprintf(buf, HUMAN_TEXT, "%llds", s);
	return buf;
}

char *human_bytes(uint64_t bytes, char buf[HUMAN_TEXT])
{
	static const char units[] = "KMGTPE";
	double n = (double)bytes;
	int i = -1;

	while (n >= 1000 && i < 5) { /* 1000 of one unit would not fit in three digits */
		n /= 1024;
		i++;
	}
	if (i < 0)
		snprintf(buf, HUMAN_TEXT, "%llu", (unsigned long long)bytes);
	else
		snprintf(buf, HUMAN_TEXT, n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[i]);
	return buf;
}

char *human_count(int64_t n, const char *one, const char *many, char buf[HUMAN_TEXT])
{
	snprintf(buf, HUMAN_TEXT, "%lld %s%s", (long long)n, n != 1 && many ? many : one,
		 n != 1 && !many ? "s" : "");
	return buf;
}

char *human_when(int64_t ms, char buf[HUMAN_TEXT])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (!localtime_r(&s, &tm) || !strftime(buf, HUMAN_TEXT, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, HUMAN_TEXT, "-");
	return buf;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The character at s and its length; 0: invalid. */
static size_t decode(const char *s, uint32_t *ret)
{
	const unsigned char *b = (const unsigned char *)s;
	size_t len = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = len == 1 ? b[0] : b[0] & (0x7fu >> len);

	if (!len || b[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (b[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return len;
}

static bool is_safe(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
		return false;
	/* marks that change the direction of text, or are invisible */
	return c != 0x61c && !(c >= 0x200b && c <= 0x200f) && !(c >= 0x202a && c <= 0x202e) &&
	       !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff && !(c >= 0xe0000 && c < 0xe0100);
}

char *human_clean(const char *text, char *buf, size_t size)
{
	size_t n = 0, len;
	uint32_t c;

	for (; *text; text += len) {
		bool bad = !(len = decode(text, &c)) || !is_safe(c);
		size_t add = bad ? 1 : len;

		if (n + add >= size)
			break;
		memcpy(buf + n, bad ? "?" : text, add);
		n += add;
		len = len ? len : 1;
	}
	buf[n] = '\0';
	return buf;
}

char *human_clean_dup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *buf = malloc(size);

	return buf ? human_clean(text, buf, size) : NULL;
}

/* The width of a character in a UTF-8 locale: the user's locale does not matter. */
static size_t columns(uint32_t c)
{
	static locale_t utf8;
	locale_t before;
	int w;

	if (c < 0x80)
		return 1;
	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!utf8)
		return 1;
	before = uselocale(utf8);
	w = wcwidth((wchar_t)c);
	uselocale(before);
	return w < 0 ? 1 : (size_t)w;
}

size_t human_fit(const char *clean, size_t most)
{
	size_t at = 0, used = 0, len;
	uint32_t c;

	while (clean[at]) {
		len = decode(clean + at, &c);
		used += len ? columns(c) : 1;
		if (used > most)
			break;
		at += len ? len : 1;
	}
	return at;
}

size_t human_width(const char *clean)
{
	size_t used = 0, len;
	uint32_t c;

	for (; *clean; clean += len ? len : 1) {
		len = decode(clean, &c);
		used += len ? columns(c) : 1;
	}
	return used;
}

/* Jansson escapes control characters below 0x20 only. */
void human_put_json(const char *text, FILE *to)
{
	const unsigned char *p = (const unsigned char *)text;
	bool shown = isatty(fileno(to));

	for (; shown && *p; p++) {
		if (*p == 0x7f)
			fputs("\\u007f", to);
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			fprintf(to, "\\u%04x", *++p);
		else
			putc(*p, to);
	}
	fprintf(to, "%s\n", (const char *)p);
}

/* ---- colours --------------------------------------------------------------------------------- */

bool human_colours(FILE *to)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && isatty(fileno(to)) && !(term && strcmp(term, "dumb") == 0);
}

const char *human_tint(enum tint tint)
{
	static const char *const codes[] = {
		[TINT_NONE] = "",	  [TINT_BOLD] = "\033[1m", [TINT_DIM] = "\033[2m",
		[TINT_GOOD] = "\033[32m", [TINT_BAD] = "\033[31m", [TINT_WARN] = "\033[33m",
	};

	return codes[tint];
}

const char *human_tint_end(enum tint tint)
{
	return tint == TINT_NONE ? "" : "\033[0m";
}
