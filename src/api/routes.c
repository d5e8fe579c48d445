/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the route of a request. A path is split at its slashes before the parts are decoded, so an
 * encoded slash never starts a new part. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/routes.h"
#include "base/array.h"
#include "base/percent.h"

enum { PARTS_MAX = 8, TAIL = 3 };

#define ADDRESS_OF(name) &name##_surface,
static const struct api_surface *const surfaces[] = { API_SURFACES(ADDRESS_OF) };

void api_each_route(void (*fn)(const struct api_route *r))
{
	for (size_t s = 0; s < ARRAY_LEN(surfaces); s++)
		for (const struct api_route *r = surfaces[s]->routes; r->method; r++)
			fn(r);
}

static int fail_malformed(const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "path: %s", why);
}

/* ---- matching -------------------------------------------------------------------------------- */

struct path {
	char *parts[PARTS_MAX]; /* decoded */
	size_t lens[PARTS_MAX]; /* lengths of the parts */
	char *tails[PARTS_MAX]; /* this part and the rest, decoded, with their slashes */
	bool slash[PARTS_MAX]; /* the part contains a slash where none is allowed */
	size_t count; /* if the last is only a tail, parts[count - 1] is NULL */
};

static int split_path(struct api_arena *arena, const char *text, struct path *ret, struct err *err)
{
	struct path p = { 0 };

	if (*text != '/')
		return fail_malformed("must start with a slash", err);
	while (text && p.count < PARTS_MAX) {
		const char *part = text + 1, *end = strchr(part, '/');
		size_t len = end ? (size_t)(end - part) : strlen(part), n = p.count++;

		p.parts[n] = arena_text(arena, part, len);
		p.tails[n] = arena_text(arena, part, strlen(part));
		if (!p.parts[n] || !p.tails[n])
			return err_sys(err, ENOMEM, "path");
		if (!percent_decode(p.parts[n], false) || !percent_decode(p.tails[n], false))
			return fail_malformed("invalid percent-encoding", err);
		p.lens[n] = strlen(p.parts[n]);
		/* a session key may contain slashes; other names must not */
		p.slash[n] = strchr(p.parts[n], '/') && strncmp(p.parts[n], "key:", 4) != 0;
		text = end;
	}
	if (text) /* longer than any route without a tail */
		p.parts[PARTS_MAX - 1] = NULL;
	*ret = p;
	return 0;
}

static bool is_name(const char *pattern, size_t len)
{
	return len > 2 && pattern[0] == '{' && pattern[len - 1] == '}';
}

static bool is_tail(const char *pattern, size_t len)
{
	return is_name(pattern, len) && len > TAIL + 2 &&
	       strncmp(pattern + len - 1 - TAIL, "...", TAIL) == 0;
}

/* True if the pattern matches; *slash: only because a name contains a slash. */
static bool match_path(const char *pattern, const struct path *p, const char *params[4],
		       bool *slash)
{
	size_t n = 0, i = 0;

	*slash = false;
	for (; pattern && *pattern; i++) {
		const char *part = pattern + 1, *end = strchr(part, '/');
		size_t len = end ? (size_t)(end - part) : strlen(part);

		if (i == p->count)
			return false;
		if (is_tail(part, len)) {
			params[n] = p->tails[i];
			return true;
		}
		if (!p->parts[i])
			return false;
		if (is_name(part, len)) {
			if (!*p->parts[i])
				return false;
			*slash |= p->slash[i];
			params[n++] = p->parts[i];
		} else if (p->lens[i] != len || memcmp(p->parts[i], part, len) != 0) {
			return false;
		}
		pattern = end;
	}
	return i == p->count;
}

static void add_allowed(char *list, size_t size, const char *method)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", method);
}

struct search {
	const char *method;
	const struct path *path;
	struct route_match found;
	bool head, slash;
};

/* HEAD uses the route of GET unless the path has a route for HEAD. */
static bool serves(const struct api_route *r, const char *method)
{
	return strcmp(r->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

static void try_route(struct search *s, const struct api_surface *surface,
		      const struct api_route *r)
{
	const char *params[4] = { "", "", "", "" };
	bool slash;

	if (!match_path(r->path, s->path, params, &slash))
		return;
	s->slash |= slash;
	s->found.surface = surface;
	if (!strstr(s->found.allow, r->method))
		add_allowed(s->found.allow, sizeof(s->found.allow), r->method);
	s->head |= strcmp(r->method, "HEAD") == 0;
	if (!serves(r, s->method))
		return;
	if (s->found.route &&
	    (strcmp(r->method, s->method) != 0 || strcmp(s->found.route->method, s->method) == 0))
		return;
	s->found.route = r;
	memcpy(s->found.params, params, sizeof(params));
}

/* The length of what precedes the first name, without a slash at the end. */
static size_t get_fixed_len(const char *pattern)
{
	size_t len = strcspn(pattern, "{");

	while (len && pattern[len - 1] == '/')
		len--;
	return len;
}

/* The surface that an unknown path was probably meant for: the one whose route has most in common
 * with its beginning. NULL: none. */
static const struct api_surface *guess_surface(const char *path)
{
	const struct api_surface *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < ARRAY_LEN(surfaces); i++)
		for (const struct api_route *r = surfaces[i]->routes; r->method; r++) {
			size_t len = get_fixed_len(r->path);

			if (len > most && strncmp(path, r->path, len) == 0) {
				most = len;
				best = surfaces[i];
			}
		}
	return best;
}

int route_find(struct api_arena *arena, const char *method, const char *path,
	       struct route_match *ret, struct err *err)
{
	struct path p;
	struct search s = { .method = method, .path = &p };

	*ret = (struct route_match){ .params = { "", "", "", "" } };
	if (split_path(arena, path, &p, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(surfaces); i++)
		for (const struct api_route *r = surfaces[i]->routes; r->method; r++)
			try_route(&s, surfaces[i], r);
	if (s.slash)
		return fail_malformed("a name must not contain a slash", err);
	if (strstr(s.found.allow, "GET") && !s.head)
		add_allowed(s.found.allow, sizeof(s.found.allow), "HEAD");
	*ret = s.found;
	if (ret->route)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(ret->params); i++)
		ret->params[i] = "";
	if (!*ret->allow) {
		ret->surface = guess_surface(path);
		return err_set(err, ERR_NOT_FOUND, "no such route: %.100s (see /docs)", path);
	}
	return api_fail(err, ERR_INVALID, EOPNOTSUPP, "method %.20s not allowed; use %s", method,
			ret->allow);
}
