/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/keeper_stats.h"

struct batch {
	bool done;
	size_t sent, received; /* the replies come in order */
	struct keeper_measurement *items;
	struct err err;
};

static void on_reply(void *arg, const struct keeper_reply *reply, int fd, const struct err *err)
{
	struct batch *b = arg;
	struct keeper_measurement *m = &b->items[b->received++];

	(void)fd;
	if (!reply)
		b->err = *err;
	else
		m->stats = reply->stats;
	m->known = reply && reply->code == ERR_NONE;
	b->done = b->received == b->sent;
}

/* Sends as many as fit into the socket. */
static int send_some(struct keeper_client *k, struct batch *b, size_t n, struct err *err)
{
	while (b->sent < n) {
		struct keeper_request req =
			keeper_client_request(KEEPER_STATS, b->items[b->sent].sandbox);

		if (keeper_client_send(k, &req, NULL, 0, on_reply, b, err) < 0)
			return b->sent ? 0 : -1;
		b->sent++;
	}
	return 0;
}

int keeper_stats_read(struct keeper_client *k, struct keeper_measurement *items, size_t n,
		      struct err *err)
{
	for (struct batch b; n; items += b.sent, n -= b.sent) {
		b = (struct batch){ .items = items };
		if (send_some(k, &b, n < KEEPER_STATS_BATCH ? n : KEEPER_STATS_BATCH, err) < 0 ||
		    keeper_client_wait(k, &b.done, &b, err) < 0)
			return -1;
		if (b.err.code) {
			*err = b.err;
			return -1;
		}
	}
	return 0;
}
