/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pax.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define OCTAL_11 077777777777ull
#define OCTAL_7 07777777u
/* The latest time that lodge reads; some file systems can store later ones. */
#define TIME_MAX (INT64_MAX / 20)

_Static_assert(sizeof(struct pax_header) == PAX_BLOCK, "a header is one block");

int pax_bytes(struct pax *p, const void *bytes, size_t len)
{
	p->total += len;
	return buffered_writer_put(&p->out, bytes, len);
}

int pax_zeros(struct pax *p, uint64_t len)
{
	static const char zeros[64 * 1024];
	int r = 0;

	while (len && r == 0) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		r = pax_bytes(p, zeros, n);
		len -= n;
	}
	return r;
}

static size_t digits(size_t n)
{
	size_t d = 1;

	for (; n >= 10; n /= 10)
		d++;
	return d;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
int pax_record(struct pax *p, const char *key, const void *value, size_t len)
{
	size_t body = strlen(key) + len + 3, total = body + digits(body);

	total = body + digits(total);
	if (total > sizeof(p->extra) - p->extra_len)
		return -E2BIG;
	p->extra_len += (size_t)snprintf(p->extra + p->extra_len, sizeof(p->extra) - p->extra_len,
					 "%zu %s=", total, key);
	memcpy(p->extra + p->extra_len, value, len);
	p->extra_len += len;
	p->extra[p->extra_len++] = '\n';
	return 0;
}

static int add_number(struct pax *p, const char *key, uint64_t v, uint64_t max)
{
	char text[32];

	if (v <= max)
		return 0;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return pax_record(p, key, text, strlen(text));
}

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			return false;
	return true;
}

/* Readers agree on the encoding of a name only in a record, which is UTF-8. */
static int add_text(struct pax *p, const char *key, const char *text, size_t max)
{
	size_t n = strlen(text);

	return n > max || !is_plain(text) ? pax_record(p, key, text, n) : 0;
}

static int add_time(struct pax *p, const struct timespec *t)
{
	long long sec = t->tv_sec;
	long ns = t->tv_nsec;
	char text[48];

	if (ns == 0 && sec >= 0 && sec <= (long long)OCTAL_11)
		return 0;
	if (sec < 0 && ns) { /* -1.75 s is -2 s and 250000000 ns */
		sec++;
		ns = 1000000000 - ns;
	}
	sec = sec > TIME_MAX ? TIME_MAX : sec < -TIME_MAX ? -TIME_MAX : sec;
	snprintf(text, sizeof(text), "%s%lld.%09ld", t->tv_sec < 0 ? "-" : "", sec < 0 ? -sec : sec,
		 ns);
	return pax_record(p, "mtime", text, strlen(text));
}

/* A value above `max` becomes zero: a record has it. */
static void put_octal(char *field, size_t size, uint64_t v, uint64_t max)
{
	snprintf(field, size, "%0*llo", (int)size - 1, (unsigned long long)(v <= max ? v : 0));
}

static void put_text(char *field, size_t size, const char *text)
{
	size_t n = strnlen(text, size);

	memcpy(field, text, n);
	/* The start of a longer name must not end like the name of a directory. */
	if (n == size && text[n] && text[n - 1] == '/')
		field[n - 1] = '_';
}

static int put_header(struct pax *p, const struct pax_entry *e)
{
	struct pax_header h = { .type = e->type, .magic = "ustar", .version = { '0', '0' } };
	const unsigned char *b = (const unsigned char *)&h;
	bool device = e->type == '3' || e->type == '4';
	unsigned sum = 0;

	put_text(h.name, sizeof(h.name), e->path);
	put_text(h.link, sizeof(h.link), e->link);
	put_octal(h.mode, sizeof(h.mode), e->st->st_mode & 07777, OCTAL_7);
	put_octal(h.uid, sizeof(h.uid), e->st->st_uid, OCTAL_7);
	put_octal(h.gid, sizeof(h.gid), e->st->st_gid, OCTAL_7);
	put_octal(h.size, sizeof(h.size), e->size, OCTAL_11);
	put_octal(h.mtime, sizeof(h.mtime), (uint64_t)e->st->st_mtim.tv_sec, OCTAL_11);
	put_octal(h.major, sizeof(h.major), device ? major(e->st->st_rdev) : 0, OCTAL_7);
	put_octal(h.minor, sizeof(h.minor), device ? minor(e->st->st_rdev) : 0, OCTAL_7);
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += b[i];
	snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	return pax_bytes(p, &h, sizeof(h));
}

static int put_extra(struct pax *p, const struct stat *st)
{
	struct pax_entry e = { "PaxHeader", "", 'x', p->extra_len, st };
	int r = p->extra_len ? put_header(p, &e) : 0;

	if (r == 0)
		r = pax_bytes(p, p->extra, p->extra_len);
	if (r == 0)
		r = pax_pad(p, p->extra_len);
	p->extra_len = 0;
	return r;
}

int pax_entry(struct pax *p, const struct pax_entry *e)
{
	int r;

	if ((r = add_text(p, "path", e->path, sizeof(((struct pax_header *)0)->name))) < 0 ||
	    (r = add_text(p, "linkpath", e->link, sizeof(((struct pax_header *)0)->link))) < 0 ||
	    (r = add_number(p, "size", e->size, OCTAL_11)) < 0 ||
	    (r = add_number(p, "uid", e->st->st_uid, OCTAL_7)) < 0 ||
	    (r = add_number(p, "gid", e->st->st_gid, OCTAL_7)) < 0 ||
	    (r = add_time(p, &e->st->st_mtim)) < 0 || (r = put_extra(p, e->st)) < 0)
		return r;
	return put_header(p, e);
}

int pax_pad(struct pax *p, uint64_t size)
{
	return pax_zeros(p, -size & (PAX_BLOCK - 1));
}

int pax_end(struct pax *p)
{
	int r = pax_zeros(p, 2 * (uint64_t)PAX_BLOCK);

	return r < 0 ? r : buffered_writer_flush(&p->out);
}
