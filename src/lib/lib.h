/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge from inside: include/lodge.h over src/session, one thin call for each. */
#ifndef LODGE_LIB_LIB_H
#define LODGE_LIB_LIB_H

#include <lodge.h>

#include "engine/engine.h"
#include "admit/policy.h"
#include "thread/thread.h"

#define PUBLIC __attribute__((visibility("default")))

struct lodge {
	struct engine *engine;
	struct caller who;
	char *tenant, *actor; /* what `who` points to */
	struct thread_config threads;
};

extern _Thread_local struct err last; /* what lodge_last_error() tells */
extern _Thread_local enum session_outcome last_outcome;
extern _Thread_local struct policy_refusal last_word; /* what lodge_last_refusal() tells: these */
extern _Thread_local struct thread_limit_hit last_full;

/* ---- in: what a caller filled ---------------------------------------------------------------- */

/* The caller's struct as this version knows it: fields the caller does not know are 0, and those
 * only the caller knows must be. `given` NULL: all zeros. */
int take(const char *what, const void *given, void *ret, size_t size);
#define TAKE(type, given, ret) take("struct " #type, given, ret, sizeof(struct type))

/* Into an array; ERR_INVALID with the field's name if it does not fit. NULL is an empty text. */
int lib_get_text(const char *field, const char *text, char *ret, size_t size);
int lib_get_ref(const struct lodge_ref *ref, struct session_ref *ret);
/* An array of n, the caller's to free(); NULL for none. */
int lib_get_keys(const struct lodge_ref *keys, size_t n, struct store_binding **ret);
int lib_get_limits(const struct lodge_limits *limits, struct template *ret);
/* Where a call that needs the sandbox begins: nothing is told of the one before. */
void forget_last(void);
struct store_page lib_get_page(int64_t after, uint64_t limit);

/* ---- out: what lodge_free() takes ------------------------------------------------------------ */

/* Zeroed memory that lodge_free() gives to `fini` (which may be NULL) first. */
void *box_new(size_t size, void (*fini)(void *body));

/* A record into its public form. Each takes *rec over, also on failure, and leaves it fit for its
 * fini; ret may be NULL where the header says so. */
int lib_put_session(struct store_session *rec, struct lodge_session **ret);
int lib_put_entered(struct session_enter_result *how, struct lodge_session **ret);
int lib_put_tombstone(const struct store_tombstone *rec, struct lodge_tombstone **ret);
int lib_put_probed(const struct session_probe_result *rec, struct lodge_probed **ret);
/* Runs it to its end. */
int lib_put_run(struct lodge *l, const struct session_ref *ref, struct exec_opts *want,
		const void *input, size_t input_len, struct lodge_result **ret);
struct lodge_file *lib_put_file(const char *path, const struct agent_stat *st, const char *target);
/* Empty, for n of them; NULL: no memory. */
struct lodge_files *lib_put_files(size_t n);
int lib_put_exec(struct store_exec *rec, struct lodge_exec_info **ret);
int lib_put_snapshot(const struct store_snapshot *rec, struct lodge_snapshot **ret);

/* The same for a whole list, whose items go too. */
int lib_put_sessions(struct store_session_list *l, struct lodge_sessions **ret);
int lib_put_execs(struct store_exec_list *l, struct lodge_execs **ret);
int lib_put_snapshots(struct store_snapshot_list *l, struct lodge_snapshots **ret);
int lib_put_events(struct store_event_list *l, struct lodge_events **ret);

#endif
