/* SPDX-License-Identifier: Apache-2.0 */
#include "base/percent.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(char *s, bool plus)
{
	char *to = s;

	for (; *s; s++) {
		int high, low;

		if (*s != '%') {
			*to++ = (char)(plus && *s == '+' ? ' ' : *s);
			continue;
		}
		high = hex(s[1]);
		low = high < 0 ? -1 : hex(s[2]);
		if (low < 0 || !(high | low))
			return false;
		*to++ = (char)(high << 4 | low);
		s += 2;
	}
	*to = '\0';
	return true;
}
