/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as rows of the store, and holds on their layers. */
#include <string.h>

#include "layers/layers.h"
#include "layers/snapshot_record.h"

static int not_found(const char *id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", id);
}

/* The files are counted while they are synced, which goes on after the snapshot exists. */
int64_t snapshot_size(const struct store_layer *l)
{
	return l->bytes || l->durable ? l->bytes : SNAPSHOT_SIZE_UNKNOWN;
}

static void set_size(struct store *st, struct store_snapshot *s)
{
	struct store_layer l;
	struct err ignored;

	if (store_layer_get(st, s->layer, &l, &ignored) == 0)
		s->bytes = snapshot_size(&l);
}

int snapshot_get(struct engine *e, const struct caller *caller, const char *id,
		 struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s;
	int r = -1;

	if (!*id || strlen(id) >= STORE_ID)
		return not_found(id, err);
	WITH_STORE(e, st)
	{
		r = store_snapshot_get(st, id, &s, err);
		if (r == 0)
			set_size(st, &s);
	}
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? not_found(id, err) : -1;
	if (strcmp(s.tenant, caller->tenant) != 0)
		return not_found(id, err);
	*ret = s;
	return 0;
}

int snapshot_hold(struct engine *e, const struct caller *caller, const char *id, const char *holder,
		  struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s;

	if (snapshot_get(e, caller, id, &s, err) < 0)
		return -1;
	if (layers_hold(e, s.layer, holder, err) < 0)
		return err->code == ERR_CONFLICT ? not_found(id, err) : -1;
	if (snapshot_get(e, caller, id, ret, err) == 0)
		return 0;
	layers_release(e, s.layer, holder);
	return -1;
}

int snapshot_search(struct engine *e, const struct store_snapshot_filter *f, struct store_page page,
		    struct store_snapshot_list *ret, struct err *err)
{
	int r = -1;

	WITH_STORE(e, st)
	{
		r = store_snapshot_list(st, f, page, ret, err);
		for (size_t i = 0; r == 0 && i < ret->count; i++)
			set_size(st, &ret->items[i]);
	}
	return r;
}
