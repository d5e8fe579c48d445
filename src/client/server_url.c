/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lodged is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/internal.h"

static int take_port(struct client *c, const char *text, const char *usual, struct err *err)
{
	char *end;
	long n = *text ? strtol(text, &end, 10) : 0;

	if (*text && (*end || n < 1 || n > 65535 || text[0] < '0' || text[0] > '9'))
		return err_set(err, ERR_INVALID, "%.100s: the port is not in 1..65535", c->url);
	c->port = strdup(*text ? text : usual);
	return c->port ? 0 : err_sys(err, ENOMEM, "url");
}

/* HOST[:PORT][/]; a host of colons is in brackets. */
static int take_authority(struct client *c, const char *text, const char *usual, struct err *err)
{
	size_t len = strcspn(text, "/?#"), host = 0, skip = text[0] == '[';

	if (text[len] && strcmp(text + len, "/") != 0)
		return err_set(err, ERR_INVALID,
			       "%.100s: nothing but a host and a port may follow the scheme",
			       c->url);
	c->authority = strndup(text, len);
	if (!c->authority)
		return err_sys(err, ENOMEM, "url");
	host = strcspn(c->authority + skip, skip ? "]" : ":");
	c->host = strndup(c->authority + skip, host);
	if (!c->host)
		return err_sys(err, ENOMEM, "url");
	text = c->authority + skip + host + (skip && c->authority[skip + host] == ']');
	for (const char *p = c->authority; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_INVALID, "url: a character no host may have");
	if (!host || (skip && c->authority[skip + host] != ']') || (*text && *text != ':') ||
	    (*text == ':' && !text[1]))
		return err_set(err, ERR_INVALID, "%.100s: no host in it", c->url);
	return take_port(c, *text ? text + 1 : "", usual, err);
}

static int take_url(struct client *c, const char *url, struct err *err)
{
	if (strncmp(url, "unix:", 5) == 0) {
		c->path = strdup(url + 5);
		c->authority = strdup("localhost");
		if (!c->path || !c->authority)
			return err_sys(err, ENOMEM, "url");
		return *c->path ? 0 : err_set(err, ERR_INVALID, "unix: no path behind it");
	}
	if (strchr(url, '@')) /* not a word of it: there may be a password */
		return err_set(err, ERR_INVALID, "url: no name and no password may be in it");
	if (strncmp(url, "http://", 7) == 0)
		return take_authority(c, url + 7, "80", err);
	if (strncmp(url, "https://", 8) == 0)
		return take_authority(c, url + 8, "443", err) < 0 ? -1 : tls_context(&c->tls, err);
	return err_set(err, ERR_INVALID,
		       "\"%.100s\" is none of unix:PATH, http://HOST:PORT and https://HOST:PORT",
		       url);
}

/* It becomes a line of the head. */
static int take_key(struct client *c, const char *key, struct err *err)
{
	for (const char *p = key; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_INVALID,
				       "the key has a character at %zu that no key has",
				       (size_t)(p - key) + 1);
	c->key = strdup(key);
	return c->key ? 0 : err_sys(err, ENOMEM, "key");
}

int client_new(const char *url, const char *key, struct client **ret, struct err *err)
{
	auto_call(client_free) struct client *c = calloc(1, sizeof(*c));

	if (!c || !(c->url = strdup(url)))
		return err_sys(err, ENOMEM, "client");
	if (take_url(c, url, err) < 0 || (key && take_key(c, key, err) < 0))
		return -1;
	*ret = steal_ptr(&c);
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	tls_context_free(c->tls);
	if (c->key)
		explicit_bzero(c->key, strlen(c->key));
	free(c->url);
	free(c->key);
	free(c->host);
	free(c->port);
	free(c->path);
	free(c->authority);
	free(c);
}

void client_limit(struct client *c, int ms)
{
	c->limit_ms = ms;
}

const char *client_url(const struct client *c)
{
	return c->url;
}
