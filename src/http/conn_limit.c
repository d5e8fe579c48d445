/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn_limit.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "http/server_conn.h"

enum { UNIX_RESERVE = 64, UNIX_RESERVE_PART = 8 };

/* ---- lists ----------------------------------------------------------------------------------- */

static void list_add(struct conn_list *l, struct conn *c)
{
	c->prev = NULL;
	c->next = l->newest;
	*(l->newest ? &l->newest->prev : &l->oldest) = c;
	l->newest = c;
}

static void list_remove(struct conn_list *l, struct conn *c)
{
	*(c->prev ? &c->prev->next : &l->newest) = c->next;
	*(c->next ? &c->next->prev : &l->oldest) = c->prev;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static struct address **find_address(struct http_server *s, const uint8_t bytes[ADDRESS_BYTES])
{
	unsigned hash = 0;
	struct address **p;

	for (size_t i = 0; i < ADDRESS_BYTES; i++)
		hash = hash * 31 + bytes[i];
	p = &s->addresses[hash % ADDRESS_BUCKETS];
	while (*p && memcmp((*p)->bytes, bytes, ADDRESS_BYTES) != 0)
		p = &(*p)->next;
	return p;
}

/* NULL: out of memory. */
static struct address *get_address(struct http_server *s, const uint8_t bytes[ADDRESS_BYTES])
{
	struct address **p = find_address(s, bytes);

	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (*p)
			memcpy((*p)->bytes, bytes, ADDRESS_BYTES);
	}
	return *p;
}

static void leave_address(struct conn *c)
{
	struct address *a = c->address, **p;

	if (!a)
		return;
	*(c->newer ? &c->newer->older : &a->newest) = c->older;
	*(c->older ? &c->older->newer : &a->oldest) = c->newer;
	c->address = NULL;
	if (--a->count)
		return;
	p = find_address(c->server, a->bytes);
	*p = a->next;
	free(a);
}

static void join_address(struct conn *c, struct address *a)
{
	c->address = a;
	c->newer = NULL;
	c->older = a->newest;
	*(a->newest ? &a->newest->newer : &a->oldest) = c;
	a->newest = c;
	a->count++;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Closes it; it does not count any more. */
static void evict(struct conn *c)
{
	struct http_server *s = c->server;

	c->evicted = true;
	s->evicted++;
	leave_address(c);
	server_conn_cut(c);
}

/* A request that has arrived may have a key: its connection goes last. */
static bool has_input(const struct conn *c)
{
	int n = 0;

	return ioctl(c->io.fd, FIONREAD, &n) == 0 && n > 0;
}

static bool may_go(const struct conn *c, bool quiet)
{
	return c->armed && !c->evicted && !(quiet && has_input(c));
}

/* The oldest that may go, of all or of an address; NULL: none. */
static struct conn *find_oldest(struct conn *oldest, bool of_address, bool quiet)
{
	struct conn *c = oldest;

	while (c && !may_go(c, quiet))
		c = of_address ? c->newer : c->prev;
	return c;
}

static bool evict_oldest(struct conn *oldest, bool of_address)
{
	struct conn *c = find_oldest(oldest, of_address, true);

	if (!c)
		c = find_oldest(oldest, of_address, false);
	if (c)
		evict(c);
	return c;
}

static unsigned max_of(const struct conn *c)
{
	unsigned max = c->server->opts.max_connections, reserve = max / UNIX_RESERVE_PART;

	return c->is_unix ? max : max - (reserve < UNIX_RESERVE ? reserve : UNIX_RESERVE);
}

/* Of an IPv6 address the first half: one client usually has all of the second. */
static void get_network(const struct conn *c, uint8_t ret[ADDRESS_BYTES])
{
	memcpy(ret, &c->client, ADDRESS_BYTES);
	if (!IN6_IS_ADDR_V4MAPPED(&c->client))
		memset(ret + ADDRESS_BYTES / 2, 0, ADDRESS_BYTES / 2);
}

/* Counts it for its address, whose oldest connection makes place if there are too many. */
static bool fits_address(struct conn *c)
{
	struct http_server *s = c->server;
	uint8_t network[ADDRESS_BYTES];
	struct address *a;

	if (c->is_unix || c->is_proxy)
		return true;
	get_network(c, network);
	a = get_address(s, network);
	if (!a)
		return false;
	if (a->count >= s->opts.max_per_address) {
		/* it is freed with its last connection */
		if (!evict_oldest(a->oldest, true))
			return false;
		a = get_address(s, network);
		if (!a)
			return false;
	}
	join_address(c, a);
	return true;
}

bool conn_limit_add(struct conn *c)
{
	struct http_server *s = c->server;

	if (s->metrics.connections - s->evicted >= max_of(c) &&
	    !evict_oldest(s->strangers.oldest, false) && !evict_oldest(s->trusted.oldest, false))
		return false;
	if (!fits_address(c))
		return false;
	list_add(&s->strangers, c);
	s->metrics.connections++;
	return true;
}

void conn_limit_remove(struct conn *c)
{
	struct http_server *s = c->server;

	leave_address(c);
	list_remove(c->trusted ? &s->trusted : &s->strangers, c);
	s->metrics.connections--;
	s->evicted -= c->evicted;
}

void conn_limit_trust(struct conn *c)
{
	struct http_server *s = c->server;

	if (c->trusted)
		return;
	leave_address(c);
	list_remove(&s->strangers, c);
	list_add(&s->trusted, c);
	c->trusted = true;
}

void conn_limit_distrust(struct conn *c)
{
	struct http_server *s = c->server;

	if (!c->trusted)
		return;
	list_remove(&s->trusted, c);
	list_add(&s->strangers, c);
	c->trusted = false;
	if (!c->evicted && !fits_address(c))
		evict(c);
}
