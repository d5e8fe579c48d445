/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a keeper about a sandbox, as the engine sends them (session/pause.c, change.c). */
#ifndef LODGE_TESTS_SANDBOX_CALLS_H
#define LODGE_TESTS_SANDBOX_CALLS_H

#include "sandbox/agent_sync.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"

/* Connects to a running sandbox, as after a crash of the engine. */
static inline int sandbox_connect(struct keeper_client *k, const char *id, struct sandbox **ret,
				  struct err *why)
{
	auto_call(sandbox_free) struct sandbox *sb = NULL;

	if (sandbox_attach(k, id, &sb, why) < 0 || agent_hello(sandbox_agent(sb), NULL, why) < 0)
		return -1;
	*ret = steal_ptr(&sb);
	return 0;
}

static inline int sandbox_set_frozen(struct keeper_client *k, const struct sandbox *sb, bool frozen,
				     struct err *why)
{
	struct keeper_request r =
		keeper_client_request(frozen ? KEEPER_FREEZE : KEEPER_THAW, sandbox_id(sb));

	return keeper_client_call(k, &r, NULL, 0, NULL, NULL, why);
}

static inline int sandbox_set_limits(struct keeper_client *k, const struct sandbox *sb,
				     const struct limits *limits, struct err *why)
{
	struct keeper_request r = keeper_client_request(KEEPER_LIMITS, sandbox_id(sb));

	r.limits = *limits;
	return keeper_client_call(k, &r, NULL, 0, NULL, NULL, why);
}

#endif
