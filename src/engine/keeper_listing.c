/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/keeper_listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/internal.h"

static int add_item(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	struct keeper_listing *l = arg;
	struct keeper_listing_item *item = vec_push(&l->items, &l->count, SIZE_MAX);

	(void)pid;
	if (!item)
		return -1;
	item->what = what;
	strncpy(item->id, id, KEEPER_ID_SIZE - 1);
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct keeper_listing_item *)a)->id,
		      ((const struct keeper_listing_item *)b)->id);
}

static int list_items(struct keeper_client *k, struct keeper_listing *l, struct err *err)
{
	keeper_listing_fini(l); /* of a keeper that exited meanwhile */
	return keeper_client_list(k, add_item, l, err);
}

int keeper_listing_read_known(struct engine *e, struct keeper_listing *ret, struct err *err)
{
	struct keeper_listing l = { 0 };
	int r = KEEPER_CALL(e, err, list_items, &l, err);

	if (l.count > 1)
		qsort(l.items, l.count, sizeof(*l.items), by_id);
	*ret = l;
	return r > 0 ? err_sys(err, ENOMEM, "keeper listing") : r;
}

int keeper_listing_read(struct engine *e, struct keeper_listing *ret, struct err *err)
{
	int r = keeper_listing_read_known(e, ret, err);

	if (r < 0)
		keeper_listing_fini(ret);
	return r;
}

void keeper_listing_fini(struct keeper_listing *l)
{
	free(l->items);
	*l = (struct keeper_listing){ 0 };
}

/* A sandbox and the layer made of it have the same id: both kinds may exist. */
static bool has_item(const struct keeper_listing *l, const char *id, enum keeper_what what)
{
	size_t lo = 0, hi = l->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(l->items[mid].id, id) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < l->count && strcmp(l->items[lo].id, id) == 0; lo++)
		if (l->items[lo].what == what)
			return true;
	return false;
}

enum keeper_presence keeper_listing_sandbox(const struct keeper_listing *l, const char *id)
{
	if (has_item(l, id, KEEPER_IS_SANDBOX))
		return KEEPER_PRESENCE_SANDBOX;
	return has_item(l, id, KEEPER_IS_FILES) ? KEEPER_PRESENCE_FILES : KEEPER_PRESENCE_NONE;
}

bool keeper_listing_has_layer(const struct keeper_listing *l, const char *id)
{
	return has_item(l, id, KEEPER_IS_LAYER);
}
