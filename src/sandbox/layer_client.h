/* SPDX-License-Identifier: Apache-2.0 */
/* The files of sandboxes made with `keep`, and the layers they become. Each call is one request to
 * the keeper and blocks until it is answered. */
#ifndef LODGE_SANDBOX_LAYER_CLIENT_H
#define LODGE_SANDBOX_LAYER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "wire/keeper_proto.h"

struct keeper_client;

/* Ends every process at once; the files stay. */
int layer_stop(struct keeper_client *k, const char *id, bool *ret_found, struct err *err);
/* The files of a stopped sandbox become this layer. ERR_UNAVAILABLE with EBUSY: its processes still
 * go, try again. *ret_whole: it needs none of the layers below it. */
int layer_seal(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct err *err);
/* A copy of the files as they are; a sandbox that lives is frozen meanwhile. When ret->state is
 * KEEPER_JOB_RUNNING the layer is there when layer_job() says KEEPER_JOB_DONE. */
int layer_snap(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct keeper_job *ret, struct err *err);
int layer_drop(struct keeper_client *k, const char *layer, struct err *err);

/* ---- jobs: ask layer_job() for their end ---------------------------------------------------- */
int layer_sync(struct keeper_client *k, const char *layer, struct err *err);
int layer_merge(struct keeper_client *k, const char *layer, const char *const *from, size_t nfrom,
		struct keeper_job *ret, struct err *err);
/* `fd` (borrowed) is a file, a pipe or a socket to write to. */
int layer_export(struct keeper_client *k, const char *job, const char *const *from, size_t nfrom,
		 int fd, struct err *err);
/* A job that failed is a failure, with its sentence. Its end is told once. */
int layer_job(struct keeper_client *k, const char *layer, struct keeper_job *ret, struct err *err);

#endif
