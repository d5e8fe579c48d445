/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls, which session a call is about, and what a call had to do to reach it. */
#ifndef LODGE_ENGINE_SESSION_REF_H
#define LODGE_ENGINE_SESSION_REF_H

#include <stdbool.h>

struct caller {
	const char *tenant; /* owner of the sessions */
	const char *actor; /* for events and causes: "api", "cli", a user */
	bool is_admin; /* an operator of the service, not the owner of the session, asks */
};

struct session_ref { /* by id; or, with id NULL, by one of its keys */
	const char *id; /* of the session, or of its present sandbox */
	const char *kind, *key; /* kind NULL: "key" */
};

enum session_outcome {
	SESSION_CREATED = 1,
	SESSION_REUSED, /* it was running */
	SESSION_RESUMED, /* it was hibernated, or its sandbox was gone; its files are there */
	SESSION_REPLACED, /* the files of the earlier session are lost: state_lost */
};

enum session_source {
	SESSION_SOURCE_NONE,
	SESSION_SOURCE_POOL,
	SESSION_SOURCE_COLD,
	SESSION_SOURCE_RESUME,
	SESSION_SOURCE_FORK
};

#endif
