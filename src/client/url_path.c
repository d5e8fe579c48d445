/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "client/internal.h"

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

/* A proxy may resolve "..", encoded or not, and request another path. */
static bool has_dot_dot(const char *s)
{
	for (size_t n; *s; s += n + (s[n] == '/')) {
		n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.')
			return true;
	}
	return false;
}

/* Encodes a leading slash: a proxy may merge two slashes in a row. */
static void add_part(struct path *p, const char *s, bool slashes)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *first = s;

	for (; *s; s++) {
		if (is_plain(*s) || (slashes && *s == '/' && s != first)) {
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
	const char *query = strchr(fmt, '?'), *part, *up = NULL;
	va_list ap;

	va_start(ap, fmt);
	for (; *fmt; fmt++) {
		if (*fmt != '%' || (fmt[1] != 's' && fmt[1] != 'S')) {
			add(&p, *fmt);
			continue;
		}
		part = va_arg(ap, const char *);
		if ((!query || fmt < query) && has_dot_dot(part))
			up = part;
		add_part(&p, part, *++fmt == 'S');
	}
	va_end(ap);
	if (up)
		return err_set(err, ERR_INVALID, "%.160s: must not contain \"..\"", up);
	if (p.len >= size)
		return err_set(err, ERR_INVALID, "the path is too long");
	buf[p.len] = '\0';
	return 0;
}
