/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/layer_client.h"

#include <string.h>

#include "sandbox/keeper_client.h"

/* Refuses what does not fit instead of cutting it: a cut name would be another's. */
static int set_name(char field[KEEPER_ID_SIZE], const char *name, struct err *err)
{
	size_t n = strlen(name);

	if (n >= KEEPER_ID_SIZE)
		return err_set(err, ERR_INVALID, "a name longer than %d bytes", KEEPER_ID_SIZE - 1);
	memcpy(field, name, n + 1);
	return 0;
}

static int call(struct keeper_client *k, enum keeper_op op, const char *id, const char *layer,
		struct keeper_reply *ret, struct err *err)
{
	struct keeper_request r = keeper_client_request(op, NULL);

	if (id && set_name(r.id, id, err) < 0)
		return -1;
	if (layer && set_name(r.layer.name, layer, err) < 0)
		return -1;
	return keeper_client_call(k, &r, NULL, 0, ret, NULL, err);
}

static int call_from(struct keeper_client *k, enum keeper_op op, const char *layer,
		     const char *const *from, size_t nfrom, const int *fd, struct keeper_reply *ret,
		     struct err *err)
{
	struct keeper_request r = keeper_client_request(op, NULL);

	if (nfrom > KEEPER_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "more than %d layers", KEEPER_LAYERS_MAX);
	if (set_name(r.layer.name, layer, err) < 0)
		return -1;
	for (size_t i = 0; i < nfrom; i++)
		if (set_name(r.layer.from[i], from[i], err) < 0)
			return -1;
	r.layer.nfrom = (uint32_t)nfrom;
	return keeper_client_call(k, &r, fd, fd ? 1 : 0, ret, NULL, err);
}

int layer_stop(struct keeper_client *k, const char *id, bool *ret_found, struct err *err)
{
	struct keeper_reply reply;

	if (call(k, KEEPER_STOP, id, NULL, &reply, err) < 0)
		return -1;
	if (ret_found)
		*ret_found = reply.found;
	return 0;
}

int layer_seal(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct err *err)
{
	struct keeper_reply reply;

	if (call(k, KEEPER_SEAL, id, layer, &reply, err) < 0)
		return -1;
	if (ret_whole)
		*ret_whole = reply.whole;
	return 0;
}

int layer_snap(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call(k, KEEPER_SNAP, id, layer, &reply, err) < 0)
		return -1;
	if (ret_whole)
		*ret_whole = reply.whole;
	*ret = reply.job;
	return 0;
}

int layer_drop(struct keeper_client *k, const char *layer, struct err *err)
{
	return call(k, KEEPER_LAYER_DROP, NULL, layer, NULL, err);
}

int layer_sync(struct keeper_client *k, const char *layer, struct err *err)
{
	return call(k, KEEPER_LAYER_SYNC, NULL, layer, NULL, err);
}

int layer_merge(struct keeper_client *k, const char *layer, const char *const *from, size_t nfrom,
		struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call_from(k, KEEPER_LAYER_MERGE, layer, from, nfrom, NULL, &reply, err) < 0)
		return -1;
	*ret = reply.job;
	return 0;
}

int layer_export(struct keeper_client *k, const char *job, const char *const *from, size_t nfrom,
		 int fd, struct err *err)
{
	return call_from(k, KEEPER_LAYER_EXPORT, job, from, nfrom, &fd, NULL, err);
}

int layer_job(struct keeper_client *k, const char *layer, struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call(k, KEEPER_JOB, NULL, layer, &reply, err) < 0)
		return -1;
	*ret = reply.job;
	return 0;
}
