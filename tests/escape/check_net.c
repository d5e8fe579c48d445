/* SPDX-License-Identifier: Apache-2.0 */
/* Network: only a loopback interface and a few kinds of sockets. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "judge.h"

static int only_lo(const struct check *c)
{
	struct if_nameindex *all = if_nameindex();

	(void)c;
	if (!all)
		return trouble("if_nameindex: %s", strerror(errno));
	for (size_t i = 0; all[i].if_index; i++)
		if (strcmp(all[i].if_name, "lo") != 0 && strcmp(all[i].if_name, "sit0") != 0 &&
		    strcmp(all[i].if_name, "tunl0") != 0 && strcmp(all[i].if_name, "ip6tnl0") != 0)
			return broken("there is an interface %s", all[i].if_name);
	if_freenameindex(all);
	return held();
}

/* connect of a datagram socket only looks up the route: no packet leaves. */
static int no_route(const struct check *c)
{
	static const char *const addresses[] = { "192.0.2.1", "169.254.169.254", "10.0.0.1",
						 "192.168.0.1", "8.8.8.8" };

	(void)c;
	for (size_t i = 0; i < LEN(addresses); i++) {
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9) };
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

		inet_pton(AF_INET, addresses[i], &a.sin_addr);
		ret = connect(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
		if (ret == 0)
			return broken("there is a route to %s", addresses[i]);
	}
	return held();
}

static int host_loopback(const struct check *c)
{
	bool six = c->arg[0] == '6';
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	long port = fact_number(six ? "PORT6" : "PORT");
	int fd, ret;

	if (port <= 0)
		return unjudged("the runner listens on no such port");
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((unsigned short)port);
	a6.sin6_port = a.sin_port;
	fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ret = connect(fd, six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a,
		      six ? sizeof(a6) : sizeof(a));
	close(fd);
	return ret == 0 ? broken("port %ld of the host answered", port) : held();
}

#define SOCKET(name, family, type, protocol)                                                       \
	{                                                                                          \
		name, SYS_socket,                                                                  \
		{                                                                                  \
			family, type, protocol                                                     \
		}                                                                                  \
	}

static const struct call raw[] = {
	SOCKET("inet-raw", AF_INET, SOCK_RAW, IPPROTO_ICMP),
	SOCKET("inet-raw-raw", AF_INET, SOCK_RAW, IPPROTO_RAW),
	SOCKET("inet6-raw", AF_INET6, SOCK_RAW, 58),
	SOCKET("inet-raw-flags", AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 1),
	SOCKET("inet-packet", AF_INET, SOCK_PACKET, 0x300),
};
static const struct call packet[] = {
	SOCKET("packet-raw", AF_PACKET, SOCK_RAW, 0),
	SOCKET("packet-dgram", AF_PACKET, SOCK_DGRAM, 0),
};
static const struct call families[] = {
	SOCKET("alg", AF_ALG, SOCK_SEQPACKET, 0),
	SOCKET("vsock", AF_VSOCK, SOCK_STREAM, 0),
	SOCKET("key", AF_KEY, SOCK_RAW, 2),
	SOCKET("rxrpc", AF_RXRPC, SOCK_DGRAM, 2),
	SOCKET("can", AF_CAN, SOCK_RAW, 1),
	SOCKET("tipc", AF_TIPC, SOCK_STREAM, 0),
	SOCKET("bluetooth", AF_BLUETOOTH, SOCK_RAW, 1),
	SOCKET("nfc", AF_NFC, SOCK_RAW, 0),
	SOCKET("xdp", AF_XDP, SOCK_RAW, 0),
	SOCKET("kcm", AF_KCM, SOCK_DGRAM, 0),
	SOCKET("smc", AF_SMC, SOCK_STREAM, 0),
	SOCKET("qipcrtr", AF_QIPCRTR, SOCK_DGRAM, 0),
	SOCKET("rds", AF_RDS, SOCK_SEQPACKET, 0),
	SOCKET("pppox", AF_PPPOX, SOCK_DGRAM, 0),
	SOCKET("llc", AF_LLC, SOCK_STREAM, 0),
	SOCKET("ax25", AF_AX25, SOCK_DGRAM, 0),
	SOCKET("x25", AF_X25, SOCK_SEQPACKET, 0),
	SOCKET("phonet", AF_PHONET, SOCK_DGRAM, 0),
	SOCKET("appletalk", AF_APPLETALK, SOCK_DGRAM, 0),
	SOCKET("ipx", AF_IPX, SOCK_DGRAM, 0),
	SOCKET("ieee802154", AF_IEEE802154, SOCK_DGRAM, 0),
	SOCKET("mctp", 45, SOCK_DGRAM, 0),
	SOCKET("future", 46, SOCK_DGRAM, 0),
	SOCKET("unspec", 0, SOCK_DGRAM, 0),
};
static const struct call netlink[] = {
	SOCKET("usersock", AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK),
	SOCKET("sock_diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG),
	SOCKET("xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM),
	SOCKET("audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT),
	SOCKET("connector", AF_NETLINK, SOCK_RAW, NETLINK_CONNECTOR),
	SOCKET("netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER),
	SOCKET("uevent", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT),
	SOCKET("generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC),
	SOCKET("crypto", AF_NETLINK, SOCK_RAW, NETLINK_CRYPTO),
	SOCKET("rdma", AF_NETLINK, SOCK_RAW, NETLINK_RDMA),
	SOCKET("scsi", AF_NETLINK, SOCK_RAW, NETLINK_SCSITRANSPORT),
};
static const struct call transports[] = {
	SOCKET("sctp", AF_INET, SOCK_STREAM, IPPROTO_SCTP),
	SOCKET("sctp-seqpacket", AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP),
	SOCKET("dccp", AF_INET, SOCK_DCCP, IPPROTO_DCCP),
	SOCKET("mptcp", AF_INET, SOCK_STREAM, 262),
	SOCKET("l2tp", AF_INET, SOCK_DGRAM, 115),
	SOCKET("udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE),
};
/* The same families through the other call that creates sockets (and loads modules for them). */
static const struct call pairs[] = {
	{ "pair-alg", SYS_socketpair, { AF_ALG, SOCK_SEQPACKET, 0, 0 } },
	{ "pair-vsock", SYS_socketpair, { AF_VSOCK, SOCK_STREAM, 0, 0 } },
	{ "pair-tipc", SYS_socketpair, { AF_TIPC, SOCK_STREAM, 0, 0 } },
	{ "pair-packet", SYS_socketpair, { AF_PACKET, SOCK_RAW, 0, 0 } },
	{ "pair-netfilter", SYS_socketpair, { AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, 0 } },
	{ "pair-rxrpc", SYS_socketpair, { AF_RXRPC, SOCK_DGRAM, 2, 0 } },
};
/* Protocols on top of TCP that a plain socket can be turned into: espintcp, tls, smc. */
static const struct call layers[] = {
	{ "TCP_ULP", SYS_setsockopt, { -1, IPPROTO_TCP, 31, 0, 0 } },
};
static const struct {
	const char *name;
	const struct call *calls;
	size_t count;
} groups[] = {
#define GROUP(g)                                                                                   \
	{                                                                                          \
#g, g, LEN(g)                                                                      \
	}
	GROUP(raw),	   GROUP(packet), GROUP(families), GROUP(netlink),
	GROUP(transports), GROUP(pairs),  GROUP(layers),
};

static int refused(const struct check *c)
{
	for (size_t i = 0; i < LEN(groups); i++)
		if (strcmp(groups[i].name, c->arg) == 0)
			return judge_all(groups[i].calls, groups[i].count);
	return trouble("no group %s", c->arg);
}

/* Sets the flags that lo already has, so that nothing changes even when permitted. */
static int administer(const struct check *c)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	(void)c;
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		return trouble("lo: %s", strerror(errno));
	ret = ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return ret == 0 ? broken("the flags of lo can be set") : held();
}

#define GROUP_CHECK(group, what)                                                                   \
	{                                                                                          \
		"net-" group, what, refused, BOTH, "seccomp", .arg = group                         \
	}

const struct check checks_net[] = {
	{ "net-only-lo", "there is no interface but lo", only_lo, BOTH, "netns" },
	{ "net-no-route", "there is no route to anywhere", no_route, BOTH, "netns" },
	{ "net-host-loopback", "the host's 127.0.0.1 does not answer", host_loopback, BOTH, "netns",
	  .arg = "4" },
	{ "net-host-loopback6", "the host's ::1 does not answer", host_loopback, BOTH, "netns",
	  .arg = "6" },
	GROUP_CHECK("raw", "raw IP sockets are refused"),
	GROUP_CHECK("packet", "packet sockets are refused"),
	GROUP_CHECK("families", "all other address families are refused"),
	GROUP_CHECK("netlink", "netlink except routes is refused"),
	GROUP_CHECK("transports", "transports except TCP and UDP are refused"),
	GROUP_CHECK("pairs", "socketpair of other families is refused"),
	GROUP_CHECK("layers", "upper-layer protocols on TCP are refused"),
	{ "net-administer", "interfaces cannot be set up", administer, BOTH, "userns,caps,cgroup" },
	{ 0 },
};
