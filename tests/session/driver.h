/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the session driver: a request in, a reply out, or NULL with err set. */
#ifndef SESSION_DRIVER_H
#define SESSION_DRIVER_H

#include <jansson.h>

#include "engine/engine.h"

extern struct engine *engine;
extern const struct caller caller;

typedef json_t *op_fn(const json_t *q, struct err *err);
op_fn *op_find(const char *name);

const char *str(const json_t *q, const char *key);
int64_t num(const json_t *q, const char *key);
bool flag(const json_t *q, const char *key);
struct session_ref ref_of(const json_t *q);
/* Plain text, or "hex:..." otherwise. */
json_t *bytes(const void *data, size_t len);
json_t *session_json(const struct store_session *s);
json_t *snapshot_json(const struct store_snapshot *s);
/* A reply that consists of one record, which is freed. */
json_t *record(int r, struct store_session *s);

op_fn op_enter, op_resume, op_get, op_change, op_extend, op_activity, op_destroy, op_list, op_probe,
	op_valid, op_sweep, op_collect, op_facts, op_clock, op_nofile, op_kept, op_events;
op_fn op_run, op_start, op_wait, op_output, op_stdin, op_signal, op_execs, op_write, op_read,
	op_remove, op_stat, op_tar;
op_fn op_snapshot, op_snapshots, op_snapshot_remove, op_fork, op_rollback, op_export, op_import,
	op_durable, op_project, op_project_remove, op_fragment, op_fragment_remove, op_switch,
	op_where, op_kill_user, op_cleanup, op_quota, op_full;

#endif
