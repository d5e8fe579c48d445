/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Host and Origin. A web page can make a browser send requests here (Origin), and DNS
 * rebinding can make this host look like the page's own (Host). */
#include "api/core/origin_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/core/internal.h"

enum { NAME_SIZE = 256 };

/* Copies the name without its port; false if malformed or too long. */
static bool copy_host_name(const char *host, char ret[NAME_SIZE])
{
	size_t len = *host == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL)
				  : strcspn(host, ":");

	if (len == 0 || len >= NAME_SIZE || (host[len] && host[len] != ':'))
		return false;
	if (host[len] && strspn(host + len + 1, "0123456789") != strlen(host + len + 1))
		return false;
	memcpy(ret, host, len);
	ret[len] = '\0';
	return true;
}

bool origin_is_loopback(const char *host)
{
	static const char suffix[] = ".localhost";
	char name[NAME_SIZE];
	struct in_addr four;
	size_t n;

	if (!copy_host_name(host, name))
		return false;
	n = strlen(name);
	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	if (n >= sizeof(suffix) && strcasecmp(name + n - (sizeof(suffix) - 1), suffix) == 0)
		return true;
	return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static bool contains(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcasecmp(*list, name) == 0)
			return true;
	return false;
}

static bool host_is_ours(struct api *a, const char *host)
{
	char name[NAME_SIZE];
	bool ours;

	if (origin_is_loopback(host))
		return true;
	pthread_rwlock_rdlock(&a->names);
	ours = (!a->hosts && !a->opts.loopback_only) ||
	       (copy_host_name(host, name) && contains(a->hosts, name));
	pthread_rwlock_unlock(&a->names);
	return ours;
}

static bool origin_is_listed(struct api *a, const char *origin)
{
	bool listed;

	pthread_rwlock_rdlock(&a->names);
	listed = contains(a->origins, origin) || contains(a->origins, "*");
	pthread_rwlock_unlock(&a->names);
	return listed;
}

/* The page was served by this server. */
static bool origin_is_own(const char *origin, const char *host)
{
	const char *name = strstr(origin, "://");

	return host && name && strcasecmp(name + 3, host) == 0;
}

/* Browsers send Sec-Fetch-Site even without an Origin. */
static bool is_cross_site_change(const struct http_request *rq)
{
	const char *site = http_header(rq, "Sec-Fetch-Site"), *method = http_method(rq);

	return site && strcasecmp(site, "cross-site") == 0 && strcmp(method, "GET") != 0 &&
	       strcmp(method, "HEAD") != 0 && strcmp(method, "OPTIONS") != 0;
}

int origin_check(struct api *a, const struct http_request *rq, struct err *err)
{
	const char *host = http_header(rq, "Host"), *origin = http_header(rq, "Origin");

	if (host && strcmp(http_peer(rq), "unix") != 0 && !host_is_ours(a, host))
		return api_fail(err, ERR_DENIED, EADDRNOTAVAIL,
				"host %.100s is not served here; add it to `hosts` in lodged.conf",
				host);
	if (origin && !origin_is_own(origin, host) && !origin_is_listed(a, origin))
		return err_set(err, ERR_DENIED,
			       "origin %.100s is not allowed; add it to `origins` in lodged.conf",
			       origin);
	if (!origin && is_cross_site_change(rq))
		return err_set(err, ERR_DENIED,
			       "cross-site request refused; add the page's origin to `origins` in "
			       "lodged.conf");
	return 0;
}

void origin_put_cors(struct api *a, struct http_request *rq)
{
	const char *origin = http_header(rq, "Origin");

	if (!origin || !origin_is_listed(a, origin))
		return;
	http_set_header(rq, "Access-Control-Allow-Origin", origin);
	http_set_header(rq, "Access-Control-Expose-Headers",
			"ETag, Lodge-Exec, Lodge-Outcome, Retry-After, X-Request-Id");
	http_set_header(rq, "Vary", "Origin");
}

void origin_put_options(struct api *a, struct http_request *rq, const char *allow)
{
	const char *origin = http_header(rq, "Origin");

	http_set_header(rq, "Allow", allow);
	if (origin && origin_is_listed(a, origin) &&
	    http_header(rq, "Access-Control-Request-Method")) {
		http_set_header(rq, "Access-Control-Allow-Methods", allow);
		http_set_header(rq, "Access-Control-Allow-Headers",
				"Authorization, X-Api-Key, Content-Type, Accept, If-Match, "
				"If-None-Match, Last-Event-ID, Range, X-Request-Id");
		http_set_header(rq, "Access-Control-Max-Age", "600");
	}
	http_reply(rq, 204, NULL, NULL, 0);
}
