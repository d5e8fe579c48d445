/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Host and Origin. A web page can make a browser send requests here (Origin), and DNS
 * rebinding can make this host look like the page's own (Host). */
#include "api/core/origin_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/core/internal.h"

enum { NAME_SIZE = 254, LABEL_MAX = 63 };

static bool is_port(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return !text[len] && len <= 5 && strtoul(text, NULL, 10) <= UINT16_MAX;
}

/* One or more labels of DNS; the last may be followed by a dot. Underscores are no part of host
 * names, but containers have them. */
static bool is_dns_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	do {
		size_t len = strspn(name, letters);

		if (!len || len > LABEL_MAX || *name == '-' || name[len - 1] == '-')
			return false;
		name += len;
	} while (*name == '.' && *++name);
	return !*name;
}

static bool is_bracketed_address(const char *name)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr six;
	size_t len = strlen(name);

	if (len < 2 || len - 2 >= sizeof(text) || name[len - 1] != ']')
		return false;
	memcpy(text, name + 1, len - 2);
	text[len - 2] = '\0';
	return inet_pton(AF_INET6, text, &six) == 1;
}

/* Copies the name without its port; false if one of them is malformed or too long. */
static bool copy_host_name(const char *host, char ret[NAME_SIZE])
{
	size_t len = *host == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL)
				  : strcspn(host, ":");

	if (len >= NAME_SIZE || (host[len] && (host[len] != ':' || !is_port(host + len + 1))))
		return false;
	memcpy(ret, host, len);
	ret[len] = '\0';
	return *ret == '[' ? is_bracketed_address(ret) : is_dns_name(ret);
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

/* An entry that ends with ":*" matches every port, and none. */
static bool origin_matches(const char *entry, const char *origin)
{
	size_t n = strlen(entry);

	if (strcmp(entry, "*") == 0)
		return true;
	if (n < 2 || strcmp(entry + n - 2, ":*") != 0)
		return strcasecmp(entry, origin) == 0;
	n -= 2;
	if (strncasecmp(entry, origin, n) != 0)
		return false;
	origin += n;
	return !*origin || (*origin == ':' && origin[1] &&
			    strspn(origin + 1, "0123456789") == strlen(origin + 1));
}

static bool any_matches(const char *const *list, const char *origin)
{
	for (; list && *list; list++)
		if (origin_matches(*list, origin))
			return true;
	return false;
}

static bool host_is_ours(struct api *a, const char *host)
{
	char name[NAME_SIZE];
	bool ours, valid = copy_host_name(host, name);

	if (origin_is_loopback(host))
		return true;
	pthread_rwlock_rdlock(&a->names);
	/* Checks of load balancers send an empty Host; browsers do not. */
	ours = (!a->hosts && !a->opts.loopback_only && (valid || !*host)) ||
	       (valid && contains(a->hosts, name));
	pthread_rwlock_unlock(&a->names);
	return ours;
}

/* Pages of this machine may call a service that only this machine can reach. Not so without keys:
 * then the origin is all that tells a page from the user. Names below .localhost are left out,
 * because other services use them for content that they do not trust. */
static bool is_default_origin(const struct api *a, const char *host, const char *origin)
{
	static const char *const loopback[] = { "http://localhost:*",
						"https://localhost:*",
						"http://127.0.0.1:*",
						"https://127.0.0.1:*",
						"http://[::1]:*",
						"https://[::1]:*",
						NULL };

	return a->opts.loopback_only && !a->opts.no_auth && host && origin_is_loopback(host) &&
	       any_matches(loopback, origin);
}

static bool origin_is_allowed(struct api *a, const struct http_request *rq, const char *origin)
{
	bool allowed;

	pthread_rwlock_rdlock(&a->names);
	allowed = a->origins ? any_matches((const char *const *)a->origins, origin)
			     : is_default_origin(a, http_header(rq, "Host"), origin);
	pthread_rwlock_unlock(&a->names);
	return allowed;
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
	if (origin && !origin_is_own(origin, host) && !origin_is_allowed(a, rq, origin))
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

	if (!origin || !origin_is_allowed(a, rq, origin))
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
	if (origin && origin_is_allowed(a, rq, origin) &&
	    http_header(rq, "Access-Control-Request-Method")) {
		http_set_header(rq, "Access-Control-Allow-Methods", allow);
		http_set_header(rq, "Access-Control-Allow-Headers",
				"Authorization, X-Api-Key, Content-Type, Accept, If-Match, "
				"If-None-Match, Last-Event-ID, Range, X-Request-Id");
		http_set_header(rq, "Access-Control-Max-Age", "600");
	}
	http_reply(rq, 204, NULL, NULL, 0);
}
