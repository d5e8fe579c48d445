/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that belong to no session: a template is built in one, or looked into. Nobody's record
 * names them, so that whoever made one ends it; what cannot be ended then, because the keeper has
 * just died, the sweep ends. Those of an engine that died are strays at the next start. */
#include <stdio.h>
#include <string.h>

#include "sandbox/sandbox.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"

/* With too many of them the rest waits for the next start. */
static void add_pending(struct engine *e, const char *id)
{
	pthread_mutex_lock(&e->mutex);
	if (e->scratch.count < SCRATCH_MAX)
		snprintf(e->scratch.ids[e->scratch.count++], sizeof(e->scratch.ids[0]), "%s", id);
	pthread_mutex_unlock(&e->mutex);
}

static void destroy(struct engine *e, const char *id)
{
	struct err err;

	if (keeper_conn_destroy(e, id, &err) < 0 && err.code != ERR_NOT_FOUND)
		add_pending(e, id);
}

/* By a name that we know: also one whose maker died before it could tell has to be ended. */
int scratch_create(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
		   struct sandbox **ret, struct err *err)
{
	struct sandbox_spec named = *spec;
	char id[STORE_ID];
	struct keeper_client *k;
	int r;

	if (id_generate("aside_", id, err) < 0)
		return -1;
	named.id = id;
	k = keeper_conn_lock(e, err);
	if (!k)
		return -1;
	r = ret_features ? keeper_client_features(k, ret_features, err) : 0;
	if (r == 0)
		r = sandbox_new(k, &named, ret, err);
	keeper_conn_unlock(e);
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
