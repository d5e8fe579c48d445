/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/layer_client.h"

#include "sandbox/keeper_client.h"

static int call_keeper(struct keeper_client *k, enum keeper_op op, const char *id,
		       const char *layer, struct keeper_reply *ret, struct err *err)
{
	struct keeper_request r = keeper_client_request(op, NULL);

	if (id && keeper_client_set_name(r.id, sizeof(r.id), "sandbox id", id, err) < 0)
		return -1;
	if (layer &&
	    keeper_client_set_name(r.layer.name, sizeof(r.layer.name), "layer", layer, err) < 0)
		return -1;
	return keeper_client_call(k, &r, NULL, 0, ret, NULL, err);
}

static int call_with_layers(struct keeper_client *k, enum keeper_op op, const char *layer,
			    const char *const *from, size_t nfrom, const int *fd,
			    struct keeper_reply *ret, struct err *err)
{
	struct keeper_request r = keeper_client_request(op, NULL);

	if (keeper_client_set_layers(r.layer.from, &r.layer.nfrom, from, nfrom, err) < 0 ||
	    keeper_client_set_name(r.layer.name, sizeof(r.layer.name), "layer", layer, err) < 0)
		return -1;
	return keeper_client_call(k, &r, fd, fd ? 1 : 0, ret, NULL, err);
}

int layer_stop(struct keeper_client *k, const char *id, bool *ret_found, struct err *err)
{
	struct keeper_reply reply;

	if (call_keeper(k, KEEPER_STOP, id, NULL, &reply, err) < 0)
		return -1;
	if (ret_found)
		*ret_found = reply.found;
	return 0;
}

int layer_seal(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct err *err)
{
	struct keeper_reply reply;

	if (call_keeper(k, KEEPER_SEAL, id, layer, &reply, err) < 0)
		return -1;
	if (ret_whole)
		*ret_whole = reply.whole;
	return 0;
}

int layer_snap(struct keeper_client *k, const char *id, const char *layer, bool *ret_whole,
	       struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call_keeper(k, KEEPER_SNAP, id, layer, &reply, err) < 0)
		return -1;
	if (ret_whole)
		*ret_whole = reply.whole;
	*ret = reply.job;
	return 0;
}

int layer_drop(struct keeper_client *k, const char *layer, struct err *err)
{
	return call_keeper(k, KEEPER_LAYER_DROP, NULL, layer, NULL, err);
}

int layer_sync(struct keeper_client *k, const char *layer, struct err *err)
{
	return call_keeper(k, KEEPER_LAYER_SYNC, NULL, layer, NULL, err);
}

int layer_merge(struct keeper_client *k, const char *layer, const char *const *from, size_t nfrom,
		struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call_with_layers(k, KEEPER_LAYER_MERGE, layer, from, nfrom, NULL, &reply, err) < 0)
		return -1;
	*ret = reply.job;
	return 0;
}

int layer_export(struct keeper_client *k, const char *job, const char *const *from, size_t nfrom,
		 int fd, struct err *err)
{
	return call_with_layers(k, KEEPER_LAYER_EXPORT, job, from, nfrom, &fd, NULL, err);
}

int layer_job(struct keeper_client *k, const char *layer, struct keeper_job *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call_keeper(k, KEEPER_JOB, NULL, layer, &reply, err) < 0)
		return -1;
	*ret = reply.job;
	return 0;
}
