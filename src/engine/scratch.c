/* SPDX-License-Identifier: Apache-2.0 */
/* No record names these sandboxes, so their creator destroys them. If that fails because the keeper
 * has just died, the sweep does it. Those of an engine that died are strays at the next start. */
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"
#include "sandbox/sandbox.h"

/* What cannot be destroyed now is kept for the sweep; with too many the rest waits for the next
 * start. */
static void destroy(struct engine *e, const char *id)
{
	struct scratch *s = &e->scratch;
	struct err err;

	if (keeper_conn_destroy(e, id, &err) == 0 || err.code == ERR_NOT_FOUND)
		return;
	MUTEX_GUARD(&e->mutex);
	if (s->count < SCRATCH_MAX)
		snprintf(s->ids[s->count++], sizeof(s->ids[0]), "%s", id);
}

static int create(struct keeper_client *k, const struct sandbox_spec *spec, unsigned *ret_features,
		  struct sandbox **ret, struct err *err)
{
	if (ret_features && keeper_client_features(k, ret_features, err) < 0)
		return -1;
	return sandbox_new(k, spec, ret, err);
}

/* The id is chosen here, so that the sandbox can be destroyed if the keeper dies while it makes it.
 */
int scratch_create(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
		   struct sandbox **ret, struct err *err)
{
	struct sandbox_spec named = *spec;
	char id[STORE_ID];
	int r;

	if (id_generate("aside_", id, err) < 0)
		return -1;
	named.id = id;
	r = KEEPER_CALL_ONCE(e, err, create, &named, ret_features, ret, err);
	if (r < 0)
		destroy(e, id);
	return r;
}

void scratch_destroy(struct engine *e, struct sandbox *sb)
{
	char id[KEEPER_ID_SIZE];

	if (!sb)
		return;
	snprintf(id, sizeof(id), "%s", sandbox_id(sb));
	sandbox_free(sb);
	destroy(e, id);
}

void scratch_sweep(struct engine *e)
{
	char ids[SCRATCH_MAX][KEEPER_ID_SIZE];
	unsigned n;

	pthread_mutex_lock(&e->mutex);
	n = e->scratch.count;
	memcpy(ids, e->scratch.ids, n * sizeof(ids[0]));
	e->scratch.count = 0;
	pthread_mutex_unlock(&e->mutex);
	for (unsigned i = 0; i < n; i++)
		destroy(e, ids[i]);
}
