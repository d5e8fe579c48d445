/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections make place for others, and which are of proxies. Most are records with one end
 * of a socket pair. */
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

static void ipv6_addresses_count_by_their_first_half(void)
{
	CHECK(begin(100, 2));
	CHECK(add("2001:db8::1", false) == 0 && add("2001:db8::2", false) == 1);
	/* another network, and IPv4, which counts in full */
	CHECK(add("2001:db8:0:1::1", false) == 2);
	CHECK(add("::ffff:10.0.0.1", false) == 3 && add("::ffff:10.0.0.1", false) == 4);
	CHECK(add("::ffff:10.0.0.2", false) == 5);
	for (int i = 0; i < count; i++)
		CHECK(!is_cut(i));
	CHECK(add("2001:db8::ffff:ffff:ffff:ffff", false) == 6);
	CHECK(is_cut(0) && !is_cut(1) && !is_cut(2));
	CHECK(add("::ffff:10.0.0.1", false) == 7);
	CHECK(is_cut(3) && !is_cut(4) && !is_cut(5));
	/* a proxy's do not count */
	for (int i = 0; i < 4; i++)
		CHECK(add("2001:db8::1", true) == 8 + i);
	CHECK(!is_cut(1) && !is_cut(6));
	CHECK(end());
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

static void networks_of_proxies(void)
{
	static const struct {
		const char *net, *address;
		bool has;
	} table[] = {
		{ "fd00::/16", "fd00:1::1", true },
		{ "fd00::/16", "fd01::1", false },
		{ "2001:db8:80::/41", "2001:db8:ff::", true },
		{ "2001:db8:80::/41", "2001:db8:7f::", false },
		{ "2001:db8::1", "2001:db8::1", true },
		{ "2001:db8::1", "2001:db8::3", false },
		{ "::/0", "2001:db8::1", true },
		{ "::/0", "::ffff:10.0.0.1", true },
		{ "::ffff:10.0.0.0/104", "::ffff:10.1.2.3", true },
		{ "10.0.0.0/8", "::ffff:10.1.2.3", true },
		{ "0.0.0.0/0", "::ffff:10.1.2.3", true },
		{ "0.0.0.0/0", "2001:db8::1", false },
		{ "::10.0.0.0/104", "::ffff:10.1.2.3", false },
	};
	static const char *const wrong[] = { "fd00::/129", "fd00::1/64", "fd00::/", "[fd00::]/16",
					     "fd00::%lo" };
	struct proxy_net net;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint8_t bytes[16];

		printf("# %s, %s\n", table[i].net, table[i].address);
		CHECK(!proxy_net_parse(table[i].net, &net, &err));
		CHECK(inet_pton(AF_INET6, table[i].address, bytes) == 1);
		CHECK(proxy_net_contains(&net, 1, bytes) == table[i].has);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(proxy_net_parse(wrong[i], &net, &err) && err.code == ERR_INVALID);
}

static void name_peer(void *arg, struct http_request *rq)
{
	(void)arg;
	http_reply(rq, 200, "text/plain", http_peer(rq), strlen(http_peer(rq)));
}

static int dial_ipv6(void)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)atoi(strrchr(at, ':') + 1)),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	close(fd);
	return -1;
}

static void a_proxy_with_an_ipv6_address(void)
{
	const char *nets[] = { "2001:db8::/32", "::/64", NULL };
	const struct http_opts o = { .handler = name_peer,
				     .max_per_address = 1,
				     .trusted_proxies = nets };
	struct answer a = { .status = 0 };
	int fds[3];

	if (http_server_new(&o, &server, &err) ||
	    http_server_listen(server, "[::1]:0", 0, at, sizeof(at), &err)) {
		stop();
		SKIP("no IPv6 here");
	}
	for (int i = 0; i < 3; i++)
		fds[i] = dial_ipv6();
	for (int i = 0; i < 3; i++) {
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\nHost: a\r\n"
					"X-Forwarded-For: 2001:db9::1, 2001:db8::7\r\n\r\n"));
		CHECK(read_response(fds[i], &a) && a.status == 200);
		CHECK_STR(a.body, "2001:db9::1");
		close(fds[i]);
	}
	free(a.body);
	stop();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(ipv6_addresses_count_by_their_first_half);
	RUN(trust_ends);
	RUN(strangers_go_before_trusted_ones);
	RUN(networks_of_proxies);
	RUN(a_proxy_with_an_ipv6_address);
	return tap_done();
}
