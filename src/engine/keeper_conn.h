/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_KEEPER_CONN_H
#define LODGE_ENGINE_KEEPER_CONN_H

#include "engine/internal.h"

/* The keeper; starts one if there is none or the last one died. NULL with err set. */
struct keeper_client *keep_lock(struct engine *e, struct err *err);
struct keeper_pool keep_pool(const struct engine *e); /* that it is asked for */
void keep_unlock(struct engine *e);
/* One that died is replaced: it may have left a sandbox frozen, which its successor thaws. */
void keep_mind(struct engine *e);
/* One request without descriptors; ret may be NULL. */
int keep_call(struct engine *e, const struct keeper_request *req, struct keeper_reply *ret,
	      struct err *err);
/* One call each, by the id of a sandbox or layer. */
int keep_stats(struct engine *e, const char *sandbox, struct keeper_stats *ret, struct err *err);
int keep_stop(struct engine *e, const char *sandbox, struct err *err);
int keep_destroy(struct engine *e, const char *sandbox, struct err *err);
/* Waits until its processes are gone. */
int keep_seal(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
	      struct err *err);
/* Waits for the copy where it is one. */
int keep_snap(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
	      uint64_t *ret_bytes, struct err *err);
/* Waits for a job that was started under this name. */
int keep_job(struct engine *e, const char *name, uint64_t *ret_bytes, struct err *err);
int keep_list(struct engine *e, struct keep_list *ret, struct err *err);
void keep_list_fini(struct keep_list *l);
enum keep_has keep_list_sandbox(const struct keep_list *l, const char *id);
bool keep_list_layer(const struct keep_list *l, const char *id);

#endif
