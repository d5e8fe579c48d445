/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of lodge-init's socket while the other end is not read. */
#include "agent_pair.h"
#include "base/fd_message.h"
#include "sandbox/agent_client.h"
#include "tap.h"

static struct err err;

static void a_full_socket_queues_and_keeps_the_order(void)
{
	static char data[AGENT_DATA_MAX];
	struct agent_stdin m = { .exec = 1, .len = sizeof(data) };
	struct agent_part parts[] = { { &m, sizeof(m) }, { data, sizeof(data) } };
	static char got[AGENT_MSG_MAX];
	struct agent_hdr h;
	size_t nfds;
	int sent = 0;

	begin();
	for (; sent < 20; sent++) {
		m.eof = sent & 1;
		CHECK(agent_send(agent, AGENT_STDIN, parts, 2, NULL, 0, NULL, NULL, &err) == 0);
	}
	CHECK(agent_events(agent) != 0);
	for (int i = 0; i < sent; i++) {
		CHECK(fd_message_recv(init_end, got, sizeof(got), NULL, 0, &nfds) > 0);
		memcpy(&h, got, sizeof(h));
		CHECK(h.req == (uint32_t)i + 1);
		CHECK(agent_dispatch(agent, &err) == 0);
	}
	finish();
}

static void the_queue_for_a_stalled_peer_is_bounded(void)
{
	static char data[AGENT_DATA_MAX];
	struct agent_stdin m = { .exec = 1, .len = sizeof(data) };
	struct agent_part parts[] = { { &m, sizeof(m) }, { data, sizeof(data) } };
	int r = 0;

	begin();
	for (int i = 0; i < 1000 && r == 0; i++)
		r = agent_send(agent, AGENT_STDIN, parts, 2, NULL, 0, NULL, NULL, &err);
	CHECK(r == -1 && err.code == ERR_LIMIT);
	finish();
}

/* Sends until nothing more is accepted. */
static void fill(void)
{
	static char data[AGENT_DATA_MAX];
	struct agent_stdin m = { .exec = 1, .len = sizeof(data) };
	struct agent_part parts[] = { { &m, sizeof(m) }, { data, sizeof(data) } };

	while (agent_send(agent, AGENT_STDIN, parts, 2, NULL, 0, NULL, NULL, &err) == 0)
		;
}

static int send_consumed(enum agent_type type, uint64_t exec, uint64_t out)
{
	struct agent_offsets o = { exec, out, 0 };
	struct agent_part part = { &o,
				   type == AGENT_CONSUMED ? sizeof(o) : sizeof(struct agent_ref) };

	return agent_send(agent, type, &part, 1, NULL, 0, NULL, NULL, &err);
}

/* The next message about this command; earlier ones are discarded. */
static uint32_t next_message(uint64_t exec, struct agent_offsets *ret)
{
	static char got[AGENT_MSG_MAX];
	struct agent_hdr h;
	size_t nfds;

	for (int i = 0; i < 4096; i++) {
		if (agent_dispatch(agent, &err) < 0 ||
		    fd_message_recv(init_end, got, sizeof(got), NULL, 0, &nfds) < (int)sizeof(h))
			return 0;
		memcpy(&h, got, sizeof(h));
		memcpy(ret, got + sizeof(h), h.len < sizeof(*ret) ? h.len : sizeof(*ret));
		if (ret->exec == exec)
			return h.type;
	}
	return 0;
}

static void a_reader_can_always_detach(void)
{
	struct agent_offsets o;

	begin();
	fill();
	for (uint64_t i = 0; i < 10000; i++) /* only the last one is queued */
		CHECK(send_consumed(AGENT_CONSUMED, 7, i) == 0);
	for (uint64_t exec = 100; exec < 100 + AGENT_EXECS_MAX; exec++)
		CHECK(send_consumed(AGENT_CONSUMED, exec, 5) == 0 &&
		      send_consumed(AGENT_DETACH, exec, 0) == 0);
	CHECK(send_consumed(AGENT_FORGET, 8, 0) == 0);
	CHECK(next_message(7, &o) == AGENT_CONSUMED && o.out == 9999);
	CHECK(next_message(100, &o) == AGENT_CONSUMED && o.out == 5);
	CHECK(next_message(100, &o) == AGENT_DETACH);
	CHECK(next_message(100 + AGENT_EXECS_MAX - 1, &o) == AGENT_CONSUMED);
	CHECK(next_message(8, &o) == AGENT_FORGET);
	finish();
}

static void a_detach_keeps_its_place_in_the_queue(void)
{
	struct agent_offsets o;

	begin();
	fill();
	CHECK(send_consumed(AGENT_CONSUMED, 7, 1) == 0 && send_consumed(AGENT_DETACH, 7, 0) == 0);
	CHECK(send_consumed(AGENT_CONSUMED, 7, 2) == 0); /* of a reader that attached after that */
	CHECK(next_message(7, &o) == AGENT_CONSUMED && o.out == 1);
	CHECK(next_message(7, &o) == AGENT_DETACH);
	CHECK(next_message(7, &o) == AGENT_CONSUMED && o.out == 2);
	finish();
}

int main(void)
{
	RUN(a_full_socket_queues_and_keeps_the_order);
	RUN(the_queue_for_a_stalled_peer_is_bounded);
	RUN(a_reader_can_always_detach);
	RUN(a_detach_keeps_its_place_in_the_queue);
	return tap_done();
}
