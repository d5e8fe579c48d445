/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections make place for others. They are records with one end of a socket pair. */
#include "http/conn_limit.h"
#include "http_client.h"

enum { MAX = 16 };

static struct http_server *limited;
static struct conn *conns[MAX];
static int peers[MAX];
static int count;

/* The index of a new idle connection of this client; -1: it does not fit. */
static int add(const char *client, bool is_proxy)
{
	struct conn *c = calloc(1, sizeof(*c));
	int pair[2] = { -1, -1 };

	if (!c || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	c->server = limited;
	c->io.fd = pair[0];
	c->armed = true;
	c->is_proxy = is_proxy;
	if (inet_pton(AF_INET6, client, &c->client) != 1 || !conn_limit_add(c)) {
		close(pair[0]);
		close(pair[1]);
		free(c);
		return -1;
	}
	conns[count] = c;
	peers[count] = pair[1];
	return count++;
}

static bool begin(unsigned all, unsigned of_address)
{
	limited = calloc(1, sizeof(*limited));
	count = 0;
	if (!limited)
		return false;
	limited->opts.max_connections = all;
	limited->opts.max_per_address = of_address;
	return true;
}

/* Whether nothing is left of connections and addresses. */
static bool end(void)
{
	bool clean = true;

	while (count) {
		count--;
		conn_limit_remove(conns[count]);
		close(conns[count]->io.fd);
		close(peers[count]);
		free(conns[count]);
	}
	for (int i = 0; i < ADDRESS_BUCKETS; i++)
		clean &= !limited->addresses[i];
	clean &= !limited->metrics.connections && !limited->evicted && !limited->strangers.newest &&
		 !limited->trusted.newest;
	free(limited);
	return clean;
}

static bool is_cut(int i)
{
	return recv(peers[i], &(char){ 0 }, 1, MSG_DONTWAIT) == 0;
}

static void trust_ends(void)
{
	CHECK(begin(100, 2));
	for (int i = 0; i < 3; i++) {
		CHECK(add("2001:db8::1", false) == i);
		conn_limit_trust(conns[i]);
	}
	CHECK(add("2001:db8::1", false) == 3);
	/* there is place for one more of this address */
	conns[0]->armed = false;
	conn_limit_distrust(conns[0]);
	conn_limit_distrust(conns[0]);
	for (int i = 0; i < count; i++)
		CHECK(!is_cut(i));
	conns[0]->armed = true;
	conn_limit_distrust(conns[1]);
	CHECK(is_cut(3) && !is_cut(0) && !is_cut(1) && !is_cut(2));
	/* it is trusted again */
	conn_limit_trust(conns[1]);
	CHECK(add("2001:db8::1", false) == 4);
	CHECK(!is_cut(0) && !is_cut(1) && !is_cut(2));
	/* threads have all of this address: the one without a place goes */
	conns[0]->armed = conns[4]->armed = false;
	conn_limit_distrust(conns[2]);
	CHECK(is_cut(2) && !is_cut(0) && !is_cut(4));
	CHECK(end());
}

static void strangers_go_before_trusted_ones(void)
{
	CHECK(begin(3, 100));
	CHECK(add("2001:db8::1", false) == 0 && add("2001:db8::2", false) == 1 &&
	      add("2001:db8::3", false) == 2);
	conn_limit_trust(conns[0]);
	conn_limit_trust(conns[1]);
	conn_limit_distrust(conns[0]);
	CHECK(add("2001:db8::4", false) == 3 && is_cut(2));
	CHECK(add("2001:db8::5", false) == 4 && is_cut(0) && !is_cut(1));
	CHECK(end());
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(trust_ends);
	RUN(strangers_go_before_trusted_ones);
	return tap_done();
}
