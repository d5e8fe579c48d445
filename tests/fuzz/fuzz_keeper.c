/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's validation of requests: any bytes, any number of descriptors. An accepted request
 * must satisfy what the rest of the keeper relies on. */
#include <stdlib.h>
#include <string.h>

#include "wire/keeper_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_create(const struct keeper_request *r, size_t nfds)
{
	must(keeper_id_is_valid(r->id) && keeper_id_is_valid(r->create.template));
	must(r->create.nbinds == nfds && nfds <= KEEPER_BINDS_MAX);
	must(!limits_bad_field(&r->create.limits));
	must(r->create.nlayers <= KEEPER_LAYERS_MAX && (!r->create.take || r->create.nlayers));
	for (uint32_t i = 0; i < r->create.nlayers; i++)
		must(keeper_id_is_valid(r->create.layers[i]));
	must(!*r->create.workdir || keeper_path_is_valid(r->create.workdir));
	for (uint32_t i = 0; i < r->create.nbinds; i++)
		must(keeper_path_is_valid(r->create.binds[i].path) &&
		     !strstr(r->create.binds[i].path, "/../"));
}

static void check_layer(const struct keeper_request *r, size_t nfds)
{
	must(keeper_id_is_valid(r->layer.name) && r->layer.nfrom <= KEEPER_LAYERS_MAX);
	must(nfds == (r->op == KEEPER_LAYER_EXPORT));
	for (uint32_t i = 0; i < r->layer.nfrom; i++)
		must(keeper_id_is_valid(r->layer.from[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct keeper_request r;
	size_t nfds = size ? data[0] % 10 : 0;

	keeper_request_problem(data, size, nfds);
	/* The size check would refuse nearly all inputs, so each is also tried as the start of a
	 * complete request. */
	memset(&r, 0, sizeof(r));
	r.version = KEEPER_VERSION;
	if (size > 1)
		memcpy((char *)&r + sizeof(r.version), data + 1,
		       size - 1 < sizeof(r) - sizeof(r.version) ? size - 1
								: sizeof(r) - sizeof(r.version));
	r.op %= KEEPER_OP_MAX + 1;
	if (keeper_request_problem(&r, sizeof(r), nfds))
		return 0;
	if (r.op == KEEPER_CREATE)
		check_create(&r, nfds);
	if (r.op > KEEPER_STOP && r.op <= KEEPER_JOB)
		check_layer(&r, nfds);
	return 0;
}
