/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "client/inside.h"

struct path {
	char *buf;
	size_t len, size;
};

static void add(struct path *p, char c)
{
	if (p->len < p->size)
		p->buf[p->len] = c;
	p->len++;
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

static void add_part(struct path *p, const char *s, bool slashes)
{
	static const char digits[] = "0123456789ABCDEF";
	bool dots = strcmp(s, ".") == 0 || strcmp(s, "..") == 0;

	for (; *s; s++) {
		if ((is_plain(*s) && !dots) || (slashes && *s == '/')) {
			add(p, *s);
			continue;
		}
		add(p, '%');
		add(p, digits[(unsigned char)*s >> 4]);
		add(p, digits[(unsigned char)*s & 15]);
	}
}

int client_path(char *buf, size_t size, struct err *err, const char *fmt, ...)
{
	struct path p = { buf, 0, size };
	va_list ap;

	va_start(ap, fmt);
	for (; *fmt; fmt++) {
		if (*fmt == '%' && (fmt[1] == 's' || fmt[1] == 'S'))
			add_part(&p, va_arg(ap, const char *), *++fmt == 'S');
		else
			add(&p, *fmt);
	}
	va_end(ap);
	if (p.len >= size)
		return err_set(err, ERR_INVALID, "a name is too long");
	buf[p.len] = '\0';
	return 0;
}
