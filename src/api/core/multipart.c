/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/percent.h"

/* A delimiter is CR LF - - boundary. Only its first byte is a CR, so a partial match that fails was
 * data, and a new match can only start at a CR. */
enum state {
	BEFORE, /* the first delimiter, whose CR LF may be missing */
	BEHIND, /* after a delimiter: - -, or blanks and CR LF */
	DASH, /* after the first - of the final delimiter */
	BLANKS,
	LINE, /* before the LF of the delimiter's line */
	HEAD,
	DATA,
	AFTER, /* after the final delimiter */
};

static int fail_form(const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "body: invalid multipart form: %s", why);
}

/* ---- Content-Type ---------------------------------------------------------------------------- */

static const char blank[] = " \t";

static bool is_boundary_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("'()+_,-./:=? ", c));
}

/* Parses a value, quoted or not, of at most size - 1 bytes, and advances *at. A backslash in quotes
 * escapes only a quote or a backslash, because some clients send paths unescaped. */
static bool parse_value(const char **at, char *ret, size_t size)
{
	const char *p = *at;
	bool quoted = *p == '"';
	size_t n = 0;

	for (p += quoted; *p && (quoted ? *p != '"' : !strchr("; \t", *p)); p++) {
		if (quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		if (n + 1 >= size)
			return false;
		ret[n++] = *p;
	}
	if (quoted && *p++ != '"')
		return false;
	ret[n] = '\0';
	*at = p;
	return true;
}

/* Parses the next "; name=value" of a header. 0: end, -1: malformed. */
static int next_parameter(const char **at, char name[32], char *value, size_t size)
{
	const char *p = *at + strspn(*at, blank);
	size_t n;

	if (!*p)
		return 0;
	if (*p++ != ';')
		return -1;
	p += strspn(p, blank);
	if (!*p) { /* some clients end with a semicolon */
		*at = p;
		return 0;
	}
	n = strcspn(p, "= \t;\"");
	if (!n || n >= 32 || p[n] != '=')
		return -1;
	memcpy(name, p, n);
	name[n] = '\0';
	p += n + 1;
	if (!parse_value(&p, value, size))
		return -1;
	*at = p;
	return 1;
}

static bool boundary_is_valid(const char *b)
{
	size_t n = strlen(b);

	for (size_t i = 0; i < n; i++)
		if (!is_boundary_char(b[i]))
			return false;
	return n && b[n - 1] != ' ';
}

static int parse_boundary(const char *at, char ret[MULTIPART_BOUNDARY + 1], struct err *err)
{
	char name[32], value[MULTIPART_BOUNDARY + 1];
	bool found = false;
	int r;

	while ((r = next_parameter(&at, name, value, sizeof(value))) > 0) {
		if (strcasecmp(name, "boundary") != 0)
			continue;
		if (found)
			return err_set(err, ERR_INVALID, "Content-Type: two boundaries");
		found = true;
		memcpy(ret, value, sizeof(value));
	}
	if (r < 0 || !found || !boundary_is_valid(ret))
		return err_set(err, ERR_INVALID,
			       "Content-Type: boundary must have 1 to %d characters",
			       MULTIPART_BOUNDARY);
	return 0;
}

int multipart_init(struct multipart *m, const char *type, const struct multipart_ops *ops,
		   void *arg, struct err *err)
{
	static const char form[] = "multipart/form-data";
	char boundary[MULTIPART_BOUNDARY + 1];
	size_t n = sizeof(form) - 1;

	if (!type || strncasecmp(type, form, n) != 0 || !strchr("; \t", type[n])) {
		err_set(err, ERR_INVALID, "Content-Type: must be %s", form);
		err->sys = EMEDIUMTYPE;
		return -1;
	}
	if (parse_boundary(type + n, boundary, err) < 0)
		return -1;
	memset(m, 0, sizeof(*m));
	m->ops = ops;
	m->arg = arg;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary, strlen(boundary));
	m->len = 4 + strlen(boundary);
	m->matched = 2; /* the CR LF before the first delimiter is optional */
	m->state = BEFORE;
	return 0;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Decodes UTF-8''a%20b (RFC 5987) in place. */
static bool decode_extended(char *s)
{
	static const char charset[] = "utf-8'";
	char *name;

	if (strncasecmp(s, charset, sizeof(charset) - 1) != 0)
		return false;
	name = strchr(s + sizeof(charset) - 1, '\'');
	if (!name)
		return false;
	memmove(s, name + 1, strlen(name));
	return percent_decode(s, false);
}

struct part {
	char name[64], filename[MULTIPART_HEAD], value[MULTIPART_HEAD];
	bool disposition, has_name, has_file, extended;
};

static int parse_disposition(struct part *p, const char *at, struct err *err)
{
	static const char form[] = "form-data";
	char name[32];
	int r;

	if (p->disposition || strncasecmp(at, form, sizeof(form) - 1) != 0)
		return fail_form("a part is not form-data", err);
	p->disposition = true;
	at += sizeof(form) - 1;
	while ((r = next_parameter(&at, name, p->value, sizeof(p->value))) > 0) {
		bool plain = strcasecmp(name, "filename") == 0;
		bool extended = strcasecmp(name, "filename*") == 0;

		if (strcasecmp(name, "name") == 0) {
			if (p->has_name || strlen(p->value) >= sizeof(p->name))
				return fail_form("a part has two names, or one that is too long",
						 err);
			memcpy(p->name, p->value, strlen(p->value) + 1);
			p->has_name = true;
		}
		if (extended && !decode_extended(p->value))
			return fail_form("filename*: must be UTF-8''NAME", err);
		/* filename* takes precedence over filename */
		if (extended || (plain && !p->extended))
			memcpy(p->filename, p->value, strlen(p->value) + 1);
		p->has_file |= plain || extended;
		p->extended |= extended;
	}
	return r < 0 ? fail_form("malformed header", err) : 0;
}

/* Encoded content would be stored without decoding, so it is rejected. */
static int check_encoding(const char *value, struct err *err)
{
	static const char *const plain[] = { "binary", "8bit", "7bit" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcasecmp(value, plain[i]) == 0)
			return 0;
	return fail_form("Content-Transfer-Encoding: must be binary", err);
}

static int parse_header(struct part *p, const char *line, struct err *err)
{
	static const char disposition[] = "Content-Disposition";
	static const char encoding[] = "Content-Transfer-Encoding";
	size_t n = strcspn(line, ":");
	const char *value = line + n + 1;

	if (!n || line[n] != ':' || strcspn(line, blank) < n)
		return fail_form("malformed header line", err);
	value += strspn(value, blank);
	if (n == sizeof(disposition) - 1 && strncasecmp(line, disposition, n) == 0)
		return parse_disposition(p, value, err);
	if (n == sizeof(encoding) - 1 && strncasecmp(line, encoding, n) == 0)
		return check_encoding(value, err);
	return 0;
}

/* Parses the complete headers of a part. */
static int parse_head(struct multipart *m, struct err *err)
{
	struct part p = { 0 };
	char *line = m->head, *end = m->head + m->used;

	if (memchr(m->head, '\0', m->used))
		return fail_form("NUL in a header", err);
	while (line < end) {
		char *lf = memchr(line, '\n', (size_t)(end - line));
		char *cr = memchr(line, '\r', (size_t)(end - line));

		if (!lf || cr != lf - 1)
			return fail_form("header lines must end with CR LF", err);
		*cr = '\0';
		if (parse_header(&p, line, err) < 0)
			return -1;
		line = lf + 1;
	}
	if (!p.has_name)
		return fail_form("a part has no name", err);
	if (++m->parts > MULTIPART_PARTS)
		return fail_form("too many parts", err);
	m->used = 0;
	m->state = DATA;
	return m->ops->begin(m->arg, p.name, p.has_file ? p.filename : NULL, err);
}

static int add_to_head(struct multipart *m, char c, struct err *err)
{
	size_t n = m->used;

	if (n == sizeof(m->head))
		return fail_form("header too long", err);
	m->head[m->used++] = c;
	if (c != '\n' || !n || m->head[n - 1] != '\r')
		return 0;
	if (n == 1) /* no headers, so no name */
		return fail_form("a part has no name", err);
	if (n < 3 || m->head[n - 2] != '\n' || m->head[n - 3] != '\r')
		return 0;
	m->used -= 2;
	return parse_head(m, err);
}

/* ---- content --------------------------------------------------------------------------------- */

static int skip(struct multipart *m, size_t len, struct err *err)
{
	m->around += len;
	return m->around > MULTIPART_AROUND ? fail_form("too many bytes outside the parts", err)
					    : 0;
}

/* Handles bytes that are not a delimiter. Those before the first part are ignored. */
static int emit(struct multipart *m, const char *bytes, size_t len, struct err *err)
{
	if (!len)
		return 0;
	return m->state == BEFORE ? skip(m, len, err) : m->ops->data(m->arg, bytes, len, err);
}

static int end_part(struct multipart *m, struct err *err)
{
	bool has_part = m->state == DATA;

	m->state = BEHIND;
	m->matched = 0;
	return has_part && m->ops->end ? m->ops->end(m->arg, err) : 0;
}

/* Consumes bytes up to the next change of state; *ret is their number. */
static int feed_data(struct multipart *m, const char *bytes, size_t len, size_t *ret,
		     struct err *err)
{
	size_t n = 0, was = m->matched;

	while (n < len && m->matched < m->len && bytes[n] == m->delimiter[m->matched]) {
		n++;
		m->matched++;
	}
	*ret = n;
	if (m->matched == m->len)
		return end_part(m, err);
	if (n == len)
		return 0;
	if (was + n) { /* not a delimiter after all; continue after the partial match */
		m->matched = 0;
		return emit(m, m->delimiter, was + n, err);
	}
	while (n < len && bytes[n] != '\r')
		n++;
	*ret = n;
	return emit(m, bytes, n, err);
}

/* Handles a byte after a delimiter. */
static int feed_line(struct multipart *m, char c, struct err *err)
{
	if (m->state == BEHIND && c == '-')
		m->state = DASH;
	else if (m->state == DASH && c == '-')
		m->state = AFTER;
	else if ((m->state == BEHIND || m->state == BLANKS) && strchr(blank, c) && c)
		m->state = BLANKS;
	else if ((m->state == BEHIND || m->state == BLANKS) && c == '\r')
		m->state = LINE;
	else if (m->state == LINE && c == '\n')
		m->state = HEAD;
	else
		return fail_form("unexpected bytes after a boundary", err);
	return m->state == BLANKS ? skip(m, 1, err) : 0;
}

static int feed_some(struct multipart *m, const char *bytes, size_t len, size_t *ret,
		     struct err *err)
{
	*ret = 1;
	switch ((enum state)m->state) {
	case BEFORE:
	case DATA:
		return feed_data(m, bytes, len, ret, err);
	case HEAD:
		return add_to_head(m, *bytes, err);
	case AFTER:
		*ret = len;
		return skip(m, len, err);
	case BEHIND:
	case DASH:
	case BLANKS:
	case LINE:
		break;
	}
	return feed_line(m, *bytes, err);
}

int multipart_feed(struct multipart *m, const char *bytes, size_t len, struct err *err)
{
	while (len) {
		size_t n = 0;

		if (m->failed)
			return fail_form("an earlier part was rejected", err);
		if (feed_some(m, bytes, len, &n, err) < 0) {
			m->failed = true;
			return -1;
		}
		bytes += n;
		len -= n;
	}
	return 0;
}

int multipart_finish(const struct multipart *m, struct err *err)
{
	return m->state == AFTER && !m->failed ? 0
					       : fail_form("the final boundary is missing", err);
}
