/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of liblodge: each call of include/lodge.h is a thin wrapper of an engine call. */
#ifndef LODGE_LIB_LIB_H
#define LODGE_LIB_LIB_H

#include <lodge.h>

#include "engine/engine.h"
#include "session/session_api.h"
#include "admit/policy.h"
#include "thread/thread.h"
#include "thread/thread_files.h"

#define PUBLIC __attribute__((visibility("default")))

struct lodge {
	struct engine *engine;
	struct caller caller;
	char *tenant, *actor; /* `who` points to these */
	struct thread_config threads;
};

extern _Thread_local struct err last; /* for lodge_last_error() */
extern _Thread_local enum session_outcome last_outcome;
extern _Thread_local struct policy_refusal last_word; /* for lodge_last_refusal() */
extern _Thread_local struct thread_limit_hit last_full;

/* ---- in: what a caller filled ---------------------------------------------------------------- */

/* Copies the caller's struct to this version's: members that the caller does not know become 0;
 * members that only the caller knows must be 0. `given` NULL: all zeros. */
int take(const char *what, const void *given, void *ret, size_t size);
#define TAKE(type, given, ret) take("struct " #type, given, ret, sizeof(struct type))

/* Copies a text into an array; ERR_INVALID naming the field if it does not fit. NULL is "". */
int lib_get_text(const char *field, const char *text, char *ret, size_t size);
int lib_get_ref(const struct lodge_ref *ref, struct session_ref *ret);
/* Returns an array of n keys for free(); NULL for none. */
int lib_get_keys(const struct lodge_ref *keys, size_t n, struct store_binding **ret);
int lib_get_limits(const struct lodge_limits *limits, struct template *ret);
/* Starts a call that needs the sandbox: resets the outcome and refusal of the previous one. */
void forget_last(void);
struct store_page lib_get_page(int64_t after, uint64_t limit);

/* ---- out: what lodge_free() takes ------------------------------------------------------------ */

/* Allocates zeroed memory; lodge_free() calls `fini` (may be NULL) before it frees it. */
void *box_new(size_t size, void (*fini)(void *body));

/* Convert a record to its public form. Each takes ownership of *rec, also on failure, and leaves it
 * valid for its fini; ret may be NULL where lodge.h says so. */
int lib_put_session(struct store_session *rec, struct lodge_session **ret);
int lib_put_entered(struct session_enter_result *how, struct lodge_session **ret);
int lib_put_tombstone(const struct store_tombstone *rec, struct lodge_tombstone **ret);
int lib_put_probed(const struct session_probe_result *rec, struct lodge_probed **ret);
/* Runs a command to its end. */
int lib_put_run(struct lodge *l, const struct session_ref *ref, struct exec_opts *want,
		const void *input, size_t input_len, struct lodge_result **ret);
struct lodge_file *lib_put_file(const char *path, const struct agent_stat *st, const char *target);
/* Allocates an empty list with space for n files; NULL without memory. */
struct lodge_files *lib_put_files(size_t n);
int lib_put_exec(struct store_exec *rec, struct lodge_exec_info **ret);
int lib_put_snapshot(const struct store_snapshot *rec, struct lodge_snapshot **ret);

/* The same for a list and its items. */
int lib_put_sessions(struct store_session_list *l, struct lodge_sessions **ret);
int lib_put_execs(struct store_exec_list *l, struct lodge_execs **ret);
int lib_put_snapshots(struct store_snapshot_list *l, struct lodge_snapshots **ret);
int lib_put_events(struct store_event_list *l, struct lodge_events **ret);

#endif
