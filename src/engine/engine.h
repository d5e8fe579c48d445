/* SPDX-License-Identifier: Apache-2.0 */
/* The engine behind every surface: opening, starting, closing. The calls themselves are in
 * session/session_api.h, machine/exec.h, snapshot/snapshot.h, exec/side_conn.h and the headers of
 * template, project and thread.
 *
 * Every call blocks and may be made from any thread. One call at a time changes a session; others
 * wait for its lock. What is returned through `ret` belongs to the caller and is untouched on
 * failure. Reads (get, list, is_valid, events) take no session lock and never write.
 *
 * - ERR_INVALID: the message names the field
 * - ERR_NOT_FOUND: never existed, or belongs to another tenant. With sys ESTALE the session was
 *   destroyed, and the message says when and why (session_tombstone())
 * - ERR_CONFLICT: not possible in this state, or another version
 * - ERR_LIMIT: a quota, or a full disk
 * - ERR_UNAVAILABLE: full, busy or broken at the moment; try again */
#ifndef LODGE_ENGINE_ENGINE_H
#define LODGE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "engine/session_ref.h"
#include "sandbox/keeper_client.h"
#include "store/store.h"

struct engine;

#define ENGINE_UNLIMITED UINT32_MAX

/* 0 or NULL: the default, in parentheses. */
struct engine_opts {
	const char *home; /* absolute path of all state */
	const char *keeper_program; /* NULL: the installed lodge-keeper */
	const char *zstd_program; /* NULL: the installed lodge-zstd */
	keeper_start_fn *start_keeper; /* for a process that may not start it itself; else NULL */
	void *start_arg;
	const char *socket; /* address of this engine, for the error of a second opener */
	bool no_threads; /* for tests: the caller calls engine_run_timers() */
	int64_t (*clock)(void *arg); /* milliseconds since 1970; NULL: the system's */
	void *clock_arg;
	/* sandboxes (one for each 64 MiB of memory, see capacity_default()); ENGINE_UNLIMITED */
	unsigned max_active;
	unsigned queue_max; /* callers that may wait for capacity (64); of one tenant half */
	/* of one tenant, see tenant_load.h (unlimited) */
	unsigned tenant_requests, tenant_streams;
	uint64_t tenant_body_bytes;
	int64_t keeper_wait_ms; /* how long a call waits for a keeper that fails (10 s) */
	int64_t keeper_timeout_ms; /* how long the keeper may take for one answer (30 s) */
	int64_t idle_ms, idle_max_ms; /* idle timeout (30 min), and its maximum (1 day) */
	/* of one sandbox until it expires (5 h), and the most it may be asked for or extended to
	 * (5 h) */
	int64_t lifetime_ms, lifetime_max_ms;
	int64_t project_lifetime_ms; /* lifetime_ms of sandboxes that a switch creates (1 h) */
	int64_t extend_ms; /* default step of session_extend() (20 min) */
	int64_t delete_after_ms; /* of a hibernated session that sets none itself; 0: never */
	bool library; /* messages name the options of liblodge instead of settings of lodged */
	int64_t probe_ms; /* deadline of a probe (15 s) */
	unsigned probe_failures; /* failed probes in a row until it is unavailable (3) */
	uint64_t template_bytes; /* maximum size of an unpacked template (16 GiB) */
	int64_t template_ms; /* maximum time to unpack it (30 min) */
	/* bytes that an imported snapshot may have for each byte of its archive (200), beyond the
	 * first 256 MiB; ENGINE_UNLIMITED */
	unsigned import_ratio;
	uint64_t import_entries; /* of its archive (4,194,304) */
	int64_t tombstones_ms, execs_ms, events_ms; /* retention (7 days each) */
	struct limits limits_max; /* of every session; 0: only the bounds of wire/limits.h */
	unsigned execs_max; /* commands kept of a session (10,000); ENGINE_UNLIMITED */
	unsigned rows_max; /* records kept of a tenant, of each kind (200,000); ENGINE_UNLIMITED */
	uint64_t disk_reserve; /* kept free on the disk (5 %, at most 512 MiB) */
	unsigned pool; /* sandboxes kept ready */
	bool environments; /* capture the environment of each template once it is used */
	bool require_limits; /* fail to start unless all default limits can be enforced */
	unsigned pool_min; /* with fewer, the pool is refilled first (half of the pool) */
};

/* Called after each try of engine_start(). */
typedef void engine_ready_fn(void *arg, const struct err *err, int64_t again_ms);
void engine_wake_timers(struct engine *e); /* runs the timers now, on their own thread */
/* The time that deadlines are compared with: milliseconds since 1970, unaffected by jumps of the
 * wall clock. */
int64_t engine_now(struct engine *e);

int engine_list_events(struct engine *e, const struct store_event_filter *f, unsigned limit,
		       struct store_event_list *ret, struct err *err);
int engine_events(struct engine *e, int64_t since, const char *tenant, const char *session,
		  unsigned limit, struct store_event_list *ret, struct err *err);

#endif
