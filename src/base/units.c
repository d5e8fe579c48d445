/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

enum { PLACES_MAX = 9, QUOTED = 40 };

/* whole + frac / scale */
struct number {
	uint64_t whole, frac, scale;
};

struct unit {
	uint64_t factor;
	const char *names[3];
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

enum scan { SCAN_OK, SCAN_BAD, SCAN_LARGE };

/* Reads "12" or "12.5" at *p and advances *p. */
static enum scan scan_number(const char **p, struct number *ret)
{
	const char *s = *p;
	struct number n = { .scale = 1 };
	bool large = false;
	int places = 0;

	if (!is_digit(*s))
		return SCAN_BAD;
	for (; is_digit(*s); s++) {
		large |= __builtin_mul_overflow(n.whole, 10u, &n.whole);
		large |= __builtin_add_overflow(n.whole, (uint64_t)(*s - '0'), &n.whole);
	}
	if (*s == '.') {
		for (s++; is_digit(*s); s++) {
			if (++places > PLACES_MAX)
				return SCAN_BAD;
			n.frac = n.frac * 10 + (uint64_t)(*s - '0');
			n.scale *= 10;
		}
		if (!places)
			return SCAN_BAD;
	}
	*p = s;
	*ret = n;
	return large ? SCAN_LARGE : SCAN_OK;
}

/* number * factor, rounded up. */
static bool scale_number(const struct number *n, uint64_t factor, uint64_t *ret)
{
	unsigned __int128 part = (unsigned __int128)n->frac * factor;
	uint64_t whole;

	if (__builtin_mul_overflow(n->whole, factor, &whole))
		return false;
	return !__builtin_add_overflow(whole, (uint64_t)((part + n->scale - 1) / n->scale), ret);
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_LEN(units[i].names) && units[i].names[k]; k++)
			if (!strcasecmp(units[i].names[k], name))
				return &units[i];
	return NULL;
}

static int parse_value(const char *what, const char *text, const struct unit *units, size_t nunits,
		       const char *kind, uint64_t *ret, struct err *err)
{
	const char *p = text;
	const struct unit *u;
	struct number n;
	enum scan got = scan_number(&p, &n);
	uint64_t v;

	u = got == SCAN_BAD ? NULL : find_unit(units, nunits, p);
	if (!u)
		return err_set(err, ERR_INVALID, "%s: \"%.*s\" is not %s", what, QUOTED, text,
			       kind);
	if (got == SCAN_LARGE || !scale_number(&n, u->factor, &v))
		return err_set(err, ERR_INVALID, "%s: \"%.*s\" is too large", what, QUOTED, text);
	*ret = v;
	return 0;
}

int units_parse_bytes(const char *what, const char *text, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = {
		{ 1, { "", "b" } },
		{ 1ull << 10, { "k", "kb", "kib" } },
		{ 1ull << 20, { "m", "mb", "mib" } },
		{ 1ull << 30, { "g", "gb", "gib" } },
		{ 1ull << 40, { "t", "tb", "tib" } },
	};

	return parse_value(what, text, units, ARRAY_LEN(units), "a size (like 256M or 1.5G)", ret,
			   err);
}

int units_parse_ms(const char *what, const char *text, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = {
		{ 1, { "ms" } },
		{ 1000, { "", "s" } },
		{ 60ull * 1000, { "m" } },
		{ 3600ull * 1000, { "h" } },
		{ 24ull * 3600 * 1000, { "d" } },
	};

	return parse_value(what, text, units, ARRAY_LEN(units), "a time (like 30s or 500ms)", ret,
			   err);
}

int units_parse_milli(const char *what, const char *text, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = { { 1000, { "" } } };
	const char *point = strchr(text, '.');

	if (point && strlen(point) > 4)
		return err_set(err, ERR_INVALID, "%s: \"%.*s\" has more than three decimal places",
			       what, QUOTED, text);
	return parse_value(what, text, units, ARRAY_LEN(units), "a number (like 2 or 0.5)", ret,
			   err);
}

int units_parse_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		      struct err *err)
{
	static const struct unit units[] = { { 1, { "" } } };
	uint64_t v;

	if (strchr(text, '.'))
		return err_set(err, ERR_INVALID, "%s: \"%.*s\" is not a whole number", what, QUOTED,
			       text);
	if (parse_value(what, text, units, ARRAY_LEN(units), "a whole number", &v, err) < 0)
		return -1;
	if (v < min || v > max)
		return err_set(err, ERR_INVALID,
			       "%s: must be between %" PRIu64 " and %" PRIu64 ", not %" PRIu64,
			       what, min, max, v);
	*ret = v;
	return 0;
}

char *units_format(uint64_t bytes, char buf[SIZE_TEXT])
{
	static const char letters[] = "TGMK";

	for (int i = 0; i < 4; i++) {
		uint64_t unit = 1ull << (10 * (4 - i));

		if (bytes >= unit && bytes % unit == 0) {
			snprintf(buf, SIZE_TEXT, "%" PRIu64 "%c", bytes / unit, letters[i]);
			return buf;
		}
	}
	snprintf(buf, SIZE_TEXT, "%" PRIu64 " bytes", bytes);
	return buf;
}

char *units_format_ms(uint64_t ms, char buf[SIZE_TEXT])
{
	static const struct {
		uint64_t ms;
		char letter;
	} units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' }, { 1000, 's' } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (ms && ms % units[i].ms == 0) {
			snprintf(buf, SIZE_TEXT, "%" PRIu64 "%c", ms / units[i].ms,
				 units[i].letter);
			return buf;
		}
	snprintf(buf, SIZE_TEXT, "%" PRIu64 "ms", ms);
	return buf;
}
