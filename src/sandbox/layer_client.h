/* SPDX-License-Identifier: Apache-2.0 */
/* Files of sandboxes created with `keep`, and the layers made from them. Each call is one request
 * to the keeper and blocks until the reply. */
#ifndef LODGE_SANDBOX_LAYER_CLIENT_H
#define LODGE_SANDBOX_LAYER_CLIENT_H

#include "wire/keeper_proto.h"

struct keeper_client;

/* Kills every process; the files stay. */
int layer_stop(struct keeper_client *k, const char *id, bool *ret_found, struct err *err);
/* Turns the files of a stopped sandbox into this layer. ERR_UNAVAILABLE with EBUSY: its processes
 * are still exiting, retry. *ret_whole: the layer needs no layers below it. */
int layer_seal(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct err *err);
/* Copies the current files into a layer; a running sandbox is frozen during the copy. If ret->state
 * is KEEPER_JOB_RUNNING, the layer exists once layer_job() returns KEEPER_JOB_DONE. */
int layer_snap(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct keeper_job *ret, struct err *err);
int layer_drop(struct keeper_client *k, const char *layer, struct err *err);

/* ---- keeper jobs: poll layer_job() for their end -------------------------------------------- */
int layer_sync(struct keeper_client *k, const char *layer, struct err *err);
int layer_merge(struct keeper_client *k, const char *layer, const char *const *from, size_t nfrom,
		struct keeper_job *ret, struct err *err);
/* Writes to `fd` (borrowed), which is a file, a pipe or a socket. */
int layer_export(struct keeper_client *k, const char *job, const char *const *from, size_t nfrom,
		 int fd, struct err *err);
/* A failed job is -1 with its error. The keeper reports the end of a job once. */
int layer_job(struct keeper_client *k, const char *layer, struct keeper_job *ret, struct err *err);

#endif
