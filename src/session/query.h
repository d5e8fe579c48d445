/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: they take no session lock and never write. */
#ifndef LODGE_SESSION_QUERY_H
#define LODGE_SESSION_QUERY_H

#include <errno.h>

#include "engine/engine.h"

/* err.sys of ERR_NOT_FOUND: the sandbox that was named has ended, but its session goes on. */
enum { SESSION_SANDBOX_ENDED = EOWNERDEAD };

/* Whether it is the id of a sandbox. */
bool session_ref_is_sandbox(const struct session_ref *ref);
int session_get(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		struct store_session *ret, struct err *err);
/* Whether the session exists and belongs to another tenant: for surfaces that deny access where
 * session_get() returns ERR_NOT_FOUND. */
bool session_is_foreign(struct engine *e, const struct caller *caller, const char *id);
int session_list(struct engine *e, const struct store_session_filter *f, struct store_page page,
		 struct store_session_list *ret, struct err *err);
int session_tombstone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      struct store_tombstone *ret, struct err *err);
/* What remains of the sandbox that ref names. */
int session_ended_sandbox(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, struct store_ended_sandbox *ret,
			  struct err *err);
/* Whether its newest sealed files would survive a power loss. Of a running one: those below it. */
int session_is_durable(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       bool *ret, struct err *err);
int session_stats(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  struct keeper_stats *ret, struct err *err);
/* The disk limit of a session; UINT64_MAX: this host does not enforce it. */
int session_disk_limit(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       uint64_t *ret, struct err *err);
/* Memory of the output of its running commands; 0 without a sandbox. */
int session_output_memory(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, uint64_t *ret, struct err *err);

/* Both return -1: ERR_NOT_FOUND; and, unless nothing is known of it, who destroyed it and why, or
 * how the sandbox that it names ended. */
int session_ref_not_found(const struct session_ref *ref, struct err *err);
int session_ref_gone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct err *err);

int session_ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err);

#endif
