/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of messages between engine and lodge-init, in both directions. The first byte gives
 * the number of descriptors, the rest is the message; accepted messages must be safe to parse. */
#include <stdlib.h>
#include <string.h>

#include "wire/agent_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void take_apart(const char *msg, size_t len)
{
	const char *s;
	size_t n = 0;

	while ((s = agent_msg_string(msg, len, n))) {
		must(s >= msg && s < msg + len);
		must(strlen(s) < len);
		if (++n > 64)
			break;
	}
}

/* An engine divides by log_bytes and trusts these ranges. */
static void check_logs(const char *msg, size_t nfds)
{
	const struct agent_progress *at;
	struct agent_hdr h;
	struct agent_logs l;

	memcpy(&h, msg, sizeof(h));
	if (h.type != AGENT_LOGR)
		return;
	memcpy(&l, msg + sizeof(h), sizeof(l));
	at = &l.proc.exit.at;
	must(nfds <= AGENT_REPLY_FDS && (nfds == 0) == (l.log_bytes == 0));
	must(l.log_bytes <= AGENT_LOG_OLD_MAX && l.log_bytes % AGENT_PAGE == 0);
	must(at->out_start <= at->out_end && at->out_end - at->out_start <= l.log_bytes);
	must(at->err_start <= at->err_end && at->err_end - at->err_start <= l.log_bytes);
	must(at->out_end <= INT64_MAX && at->err_end <= INT64_MAX);
}

static void try_message(const char *msg, size_t len, size_t nfds)
{
	if (!agent_msg_problem(msg, len, nfds, true))
		take_apart(msg, len);
	if (!agent_msg_problem(msg, len, nfds, false)) {
		take_apart(msg, len);
		check_logs(msg, nfds);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_hdr h;
	char *msg;

	if (!size)
		return 0;
	msg = malloc(size);
	if (!msg)
		return 0;
	memcpy(msg, data + 1, size - 1);
	try_message(msg, size - 1, data[0] % 5);
	/* Once more with the correct length, because most inputs would be refused for it. */
	if (size - 1 >= sizeof(h)) {
		memcpy(&h, msg, sizeof(h));
		h.len = (uint32_t)(size - 1 - sizeof(h));
		memcpy(msg, &h, sizeof(h));
		try_message(msg, size - 1, data[0] % 5);
	}
	free(msg);
	return 0;
}
