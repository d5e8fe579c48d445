/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tar headers. Every length is checked before use, and the checked length is also the one
 * that is skipped, so that an archive has only one interpretation. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "init/files/tar_head.h"

/* Bytes read, fewer only at the end of the input; -errno. */
static ssize_t read_full(int fd, char *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;

	while (have < size) {
		ssize_t n = read(fd, buf + have, size - have);

		if (n == 0)
			break;
		if (n > 0)
			have += (size_t)n;
		else if (errno == EAGAIN)
			poll(&p, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
	return (ssize_t)have;
}

static int read_exact(struct tar_source *s, char *buf, size_t size, struct err *err)
{
	ssize_t n = read_full(s->fd, buf, size);

	if (n < 0)
		return err_sys(err, (int)-n, "archive");
	if ((size_t)n < size)
		return err_set(err, ERR_INVALID, "invalid archive: unexpected end of file");
	return 0;
}

ssize_t tar_head_read(struct tar_source *s, void *buf, size_t size, struct err *err)
{
	size_t want = s->left < size ? (size_t)s->left : size;

	if (!want)
		return 0;
	if (read_exact(s, buf, want, err) < 0)
		return -1;
	s->left -= want;
	return (ssize_t)want;
}

static void begin_content(struct tar_source *s, uint64_t size)
{
	s->left = size;
	s->pad = (uint32_t)(-size & (PAX_BLOCK - 1));
}

static int skip_rest(struct tar_source *s, struct err *err)
{
	char sink[8 * PAX_BLOCK];
	ssize_t n;

	while ((n = tar_head_read(s, sink, sizeof(sink), err)) > 0)
		;
	if (n < 0 || (s->pad && read_exact(s, sink, s->pad, err) < 0))
		return -1;
	s->pad = 0;
	return 0;
}

/* Octal with blanks around it, or the binary form of GNU tar for large values. */
static bool number(const char *field, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;
	bool digits = false;

	if (field[0] & 0x80) {
		if ((unsigned char)field[0] != 0x80)
			return false; /* negative */
		for (i = 1; i < n; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | (unsigned char)field[i];
		}
		return *ret = v, true;
	}
	while (i < n && field[i] == ' ')
		i++;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++) {
		v = v << 3 | (uint64_t)(field[i] - '0');
		digits = true;
	}
	for (; i < n; i++)
		if (field[i] != ' ' && field[i] != 0)
			return false;
	*ret = v;
	return digits || v == 0;
}

static bool checksum_fits(const struct pax_header *h)
{
	const unsigned char *b = (const unsigned char *)h;
	uint64_t want;
	uint32_t plain = 0;
	int32_t with_sign = 0;

	if (!number(h->sum, sizeof(h->sum), &want))
		return false;
	for (size_t i = 0; i < sizeof(*h); i++) {
		bool in_sum = i >= offsetof(struct pax_header, sum) &&
			      i < offsetof(struct pax_header, type);
		unsigned char c = in_sum ? ' ' : b[i];

		plain += c;
		with_sign += (signed char)c;
	}
	return want == plain || (with_sign >= 0 && want == (uint32_t)with_sign);
}

static size_t copy_field(char *to, const char *from, size_t n)
{
	n = strnlen(from, n);
	memcpy(to, from, n);
	to[n] = 0;
	return n;
}

static int parse_header(const struct pax_header *h, struct tar_entry *e, struct err *err)
{
	uint64_t mode, uid, gid, mtime;
	size_t n = 0;

	if (!checksum_fits(h))
		return err_set(err, ERR_INVALID, "invalid archive: wrong header checksum");
	if (!number(h->mode, sizeof(h->mode), &mode) || !number(h->uid, sizeof(h->uid), &uid) ||
	    !number(h->gid, sizeof(h->gid), &gid) || !number(h->size, sizeof(h->size), &e->size) ||
	    !number(h->mtime, sizeof(h->mtime), &mtime) || e->size > INT64_MAX / 2 ||
	    mtime > INT64_MAX / 2 || uid > UINT32_MAX || gid > UINT32_MAX)
		return err_set(err, ERR_INVALID, "invalid archive: invalid number in a header");
	e->mode = mode & 07777;
	e->uid = (uint32_t)uid;
	e->gid = (uint32_t)gid;
	e->mtime = (struct timespec){ .tv_sec = (time_t)mtime };
	e->type = (char)(h->type && h->type != '7' ? h->type : '0');
	e->extra_len = 0;
	/* The GNU format uses the bytes of the ustar prefix for other fields. */
	if (!memcmp(h->magic, "ustar\0", 6) && h->prefix[0]) {
		n = copy_field(e->path, h->prefix, sizeof(h->prefix));
		e->path[n++] = '/';
	}
	copy_field(e->path + n, h->name, sizeof(h->name));
	copy_field(e->link, h->link, sizeof(h->link));
	return 0;
}

bool tar_record_next(const char *extra, size_t len, size_t *at, struct tar_record *ret)
{
	size_t i = *at, n = 0, end;
	const char *eq;

	while (i < len && extra[i] >= '0' && extra[i] <= '9' && n <= PAX_EXTRA_MAX)
		n = n * 10 + (size_t)(extra[i++] - '0');
	if (i >= len || extra[i] != ' ' || n > len - *at)
		return false;
	end = *at + n;
	if (end <= i + 1 || extra[end - 1] != '\n')
		return false;
	ret->key = extra + i + 1;
	eq = memchr(ret->key, '=', end - 1 - (i + 1));
	if (!eq)
		return false;
	ret->key_len = (size_t)(eq - ret->key);
	ret->value = eq + 1;
	ret->value_len = (size_t)(extra + end - 1 - ret->value);
	*at = end;
	return true;
}

static bool is_key(const struct tar_record *r, const char *key)
{
	return r->key_len == strlen(key) && !memcmp(r->key, key, r->key_len);
}

static bool decimal(const struct tar_record *r, uint64_t *ret, long *ret_ns)
{
	long ns = 0, unit = 100000000;
	uint64_t v = 0;
	size_t i = 0;

	for (; i < r->value_len && r->value[i] >= '0' && r->value[i] <= '9'; i++) {
		if (v > INT64_MAX / 20)
			return false;
		v = v * 10 + (uint64_t)(r->value[i] - '0');
	}
	if (!i)
		return false;
	if (i < r->value_len && r->value[i] == '.' && ret_ns) {
		for (i++; i < r->value_len && r->value[i] >= '0' && r->value[i] <= '9'; i++) {
			ns += (r->value[i] - '0') * unit;
			unit /= 10;
		}
	}
	if (i != r->value_len)
		return false;
	*ret = v;
	if (ret_ns)
		*ret_ns = ns;
	return true;
}

static bool text(const struct tar_record *r, char *to)
{
	if (r->value_len >= AGENT_PATH_MAX || memchr(r->value, 0, r->value_len))
		return false;
	memcpy(to, r->value, r->value_len);
	to[r->value_len] = 0;
	return true;
}

static bool apply_record(const struct tar_record *r, struct tar_entry *e)
{
	uint64_t v;

	if (is_key(r, "path"))
		return text(r, e->path);
	if (is_key(r, "linkpath"))
		return text(r, e->link);
	if (is_key(r, "size"))
		return decimal(r, &e->size, NULL) && e->size <= INT64_MAX / 2;
	if (is_key(r, "mtime")) {
		if (r->value_len && r->value[0] == '-')
			return e->mtime.tv_sec = 0, true; /* before 1970: use 0 */
		return decimal(r, &v, &e->mtime.tv_nsec) && (e->mtime.tv_sec = (time_t)v, true);
	}
	if (is_key(r, "uid"))
		return decimal(r, &v, NULL) && (e->uid = (uint32_t)v, v <= UINT32_MAX);
	if (is_key(r, "gid"))
		return decimal(r, &v, NULL) && (e->gid = (uint32_t)v, v <= UINT32_MAX);
	/* Refuse sparse files: their content is encoded. */
	return r->key_len < 11 || memcmp(r->key, "GNU.sparse.", 11) != 0;
}

static int apply_extra(struct tar_source *s, size_t len, struct tar_entry *e, struct err *err)
{
	struct tar_record r;
	size_t at = 0;

	while (at < len) {
		if (!tar_record_next(s->extra, len, &at, &r))
			return err_set(err, ERR_INVALID, "invalid archive: malformed pax record");
		if (!apply_record(&r, e))
			return err_set(err, ERR_INVALID,
				       "invalid archive: unsupported pax record %.*s",
				       (int)(r.key_len < 64 ? r.key_len : 64), r.key);
	}
	e->extra_len = len;
	return 0;
}

/* Values from the headers that precede the entry. */
struct before {
	size_t pax_len;
	char path[AGENT_PATH_MAX], link[AGENT_PATH_MAX];
};

static int read_text(struct tar_source *s, uint64_t size, char *to, struct err *err)
{
	if (size >= AGENT_PATH_MAX)
		return err_set(err, ERR_INVALID, "invalid archive: name too long");
	if (tar_head_read(s, to, (size_t)size, err) < 0)
		return -1;
	to[size] = 0;
	return 0;
}

/* 1 if it was a header for the next entry, 0 if it is the entry itself. */
static int read_before(struct tar_source *s, const struct tar_entry *e, struct before *b,
		       struct err *err)
{
	switch (e->type) {
	case 'L':
		return read_text(s, e->size, b->path, err) < 0 ? -1 : 1;
	case 'K':
		return read_text(s, e->size, b->link, err) < 0 ? -1 : 1;
	case 'x':
	case 'g':
		if (e->size > PAX_EXTRA_MAX)
			return err_set(err, ERR_LIMIT,
				       "archive has a pax header larger than 256 KiB");
		if (e->type == 'g') /* global defaults: they have no record that is used here */
			return 1;
		if (tar_head_read(s, s->extra, (size_t)e->size, err) < 0)
			return -1;
		s->extra[e->size] = 0;
		b->pax_len = (size_t)e->size;
		return 1;
	default:
		return 0;
	}
}

/* The writer may still send padding: read it, but within bounds. */
static int read_end(struct tar_source *s, struct err *err)
{
	char sink[8 * PAX_BLOCK];
	uint64_t n = 0;
	ssize_t r;

	while ((r = read_full(s->fd, sink, sizeof(sink))) > 0) {
		n += (uint64_t)r;
		if (n > TAR_AFTER_MAX)
			return err_set(err, ERR_INVALID,
				       "invalid archive: data after the end marker");
	}
	return 0;
}

static bool is_zero(const struct pax_header *h)
{
	const char *b = (const char *)h;

	return !b[0] && !memcmp(b, b + 1, sizeof(*h) - 1);
}

/* Before ustar a directory was a file whose name ends with a slash. Check the complete name: the
 * name field of a header can hold just the beginning of a long one. */
static bool is_old_dir(const struct tar_entry *e)
{
	size_t n = strlen(e->path);

	return e->type == '0' && n && e->path[n - 1] == '/';
}

static int use_before(struct tar_source *s, const struct before *b, struct tar_entry *e,
		      struct err *err)
{
	if (b->path[0])
		memcpy(e->path, b->path, sizeof(e->path));
	if (b->link[0])
		memcpy(e->link, b->link, sizeof(e->link));
	if (b->pax_len && apply_extra(s, b->pax_len, e, err) < 0)
		return -1;
	if (is_old_dir(e))
		e->type = '5';
	begin_content(s, e->size);
	if (e->type != '0' && e->size)
		return err_set(err, ERR_INVALID, "%.160s: only regular files can have content",
			       e->path);
	return 1;
}

int tar_next(struct tar_source *s, struct tar_entry *e, struct err *err)
{
	static struct before b;
	struct pax_header h;
	int r;

	b.pax_len = 0;
	b.path[0] = b.link[0] = 0;
	for (int headers = 0; headers < 16; headers++) {
		if (skip_rest(s, err) < 0 || read_exact(s, (char *)&h, sizeof(h), err) < 0)
			return -1;
		if (is_zero(&h))
			return read_end(s, err);
		if (parse_header(&h, e, err) < 0)
			return -1;
		begin_content(s, e->size);
		r = read_before(s, e, &b, err);
		if (r <= 0)
			return r < 0 ? -1 : use_before(s, &b, e, err);
	}
	return err_set(err, ERR_INVALID, "invalid archive: extended header without a member");
}
