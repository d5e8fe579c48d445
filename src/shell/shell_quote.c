/* SPDX-License-Identifier: Apache-2.0 */
/* Reads '...' and $'...', whose values are in the text. */
#include "shell/shell_quote.h"

#include <string.h>

int read_single(struct parser *p)
{
	uint32_t opened = place(p, p->pos++);

	for (; peek(p, 0); p->pos++) {
		if (peek(p, 0) == '\'') {
			p->pos++;
			return 0;
		}
		if (put_char(p, peek(p, 0), place(p, p->pos)) < 0)
			return -1;
	}
	return fail_at(p, opened, "unclosed '");
}

static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a' + 10);
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10) : 16;
}

static unsigned long number(struct parser *p, unsigned base, int most)
{
	unsigned long n = 0;

	for (; most-- && digit(peek(p, 0)) < base; p->pos++)
		n = n * base + digit(peek(p, 0));
	return n;
}

static int put_utf8(struct parser *p, unsigned long c, uint32_t offset)
{
	static const unsigned char lead[] = { [2] = 0xc0, 0xe0, 0xf0 };
	int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c < 0x80)
		return put_char(p, (char)c, offset);
	if (put_char(p, (char)(lead[n] | (c >> 6 * (n - 1) & 0x7fu >> n)), offset) < 0)
		return -1;
	for (int i = n - 2; i >= 0; i--)
		if (put_char(p, (char)(0x80 | (c >> 6 * i & 0x3f)), offset) < 0)
			return -1;
	return 0;
}

/* Reads an escape after its backslash. *cut: a NUL, which ends the value in bash. */
static int read_escape(struct parser *p, bool *cut)
{
	static const char names[] = "abeEfnrtv\\'\"?", values[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	uint32_t offset = place(p, p->pos - 1);
	char c = peek(p, 0);
	const char *known = c ? strchr(names, c) : NULL;
	unsigned long n;

	if (known) {
		p->pos++;
		return put_char(p, values[known - names], offset);
	}
	if (digit(c) < 8) {
		n = number(p, 8, 3) & 0xff;
	} else if ((c == 'x' || c == 'u' || c == 'U') && digit(peek(p, 1)) < 16) {
		p->pos++;
		n = number(p, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8);
		if (c != 'x' && n)
			return put_utf8(p, n, offset);
	} else if (c == 'c' && peek(p, 1)) {
		n = (unsigned char)peek(p, 1) & 0x1f;
		p->pos += 2;
	} else {
		return put_char(p, '\\', offset);
	}
	*cut = n == 0;
	return n ? put_char(p, (char)n, offset) : 0;
}

int read_ansi(struct parser *p)
{
	uint32_t opened = place(p, p->pos++);
	size_t keep = 0;
	bool cut = false;

	while (peek(p, 0) && peek(p, 0) != '\'') {
		int r;

		if (peek(p, 0) == '\\' && peek(p, 1)) {
			bool ends = false;

			p->pos++;
			r = read_escape(p, &ends);
			if (ends && !cut)
				keep = p->nchars;
			cut |= ends;
		} else {
			r = put_char(p, peek(p, 0), place(p, p->pos));
			p->pos++;
		}
		if (r < 0)
			return -1;
	}
	if (!peek(p, 0))
		return fail_at(p, opened, "unclosed $'");
	p->pos++;
	if (cut)
		p->nchars = keep;
	return 0;
}
