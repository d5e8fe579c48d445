/* SPDX-License-Identifier: Apache-2.0 */
/* Records in their public form, for lodge_free(). Each call takes ownership of *rec, also on
 * failure, and leaves it valid for its fini; ret may be NULL where lodge.h says so. */
#ifndef LODGE_LIB_LIB_CONVERT_H
#define LODGE_LIB_LIB_CONVERT_H

#include "lib/lib_engine.h"
#include "session/session_api.h"

int lib_put_session(struct store_session *rec, struct lodge_session **ret);
/* With the names of what was ignored or adjusted. */
int lib_put_changed(struct session_enter_result *how, struct lodge_session **ret);
int lib_put_entered(struct session_enter_result *how, struct lodge_session **ret);
int lib_put_tombstone(const struct store_tombstone *rec, struct lodge_tombstone **ret);
int lib_put_probed(const struct session_probe_result *rec, struct lodge_probed **ret);
int lib_put_exec(struct store_exec *rec, struct lodge_exec_info **ret);
int lib_put_snapshot(const struct store_snapshot *rec, struct lodge_snapshot **ret);

/* The same for a list and its items. */
int lib_put_sessions(struct store_session_list *l, struct lodge_sessions **ret);
int lib_put_execs(struct store_exec_list *l, struct lodge_execs **ret);
int lib_put_snapshots(struct store_snapshot_list *l, struct lodge_snapshots **ret);
int lib_put_events(struct store_event_list *l, struct lodge_events **ret);

#endif
