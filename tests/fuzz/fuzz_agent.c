/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of messages between engine and lodge-init, in both directions. The first byte gives
 * the number of descriptors, the rest is the message; what passes must be safe to take apart. */
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"

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

static void try_message(const char *msg, size_t len, size_t nfds)
{
	if (!agent_msg_problem(msg, len, nfds, true))
		take_apart(msg, len);
	if (!agent_msg_problem(msg, len, nfds, false))
		take_apart(msg, len);
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
	/* Once more with the length it should have said: most inputs would end there. */
	if (size - 1 >= sizeof(h)) {
		memcpy(&h, msg, sizeof(h));
		h.len = (uint32_t)(size - 1 - sizeof(h));
		memcpy(msg, &h, sizeof(h));
		try_message(msg, size - 1, data[0] % 5);
	}
	free(msg);
	return 0;
}
