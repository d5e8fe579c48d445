/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper has: running sandboxes, files of sandboxes that ended, layers. */
#ifndef LODGE_ENGINE_KEEPER_LISTING_H
#define LODGE_ENGINE_KEEPER_LISTING_H

#include "base/err.h"
#include "wire/keeper_proto.h"

struct engine;

enum keeper_presence {
	KEEPER_PRESENCE_NONE,
	KEEPER_PRESENCE_SANDBOX, /* it runs */
	KEEPER_PRESENCE_FILES, /* only its files exist */
};
struct keeper_listing { /* sorted by id */
	struct keeper_listing_item {
		char id[KEEPER_ID_SIZE];
		enum keeper_what what;
	} * items;
	size_t count;
};

int keeper_listing_read(struct engine *e, struct keeper_listing *ret, struct err *err);
/* *ret is what could be listed even if this fails. Running sandboxes come first, so if only the
 * volume cannot be read, all of them are there. */
int keeper_listing_read_known(struct engine *e, struct keeper_listing *ret, struct err *err);
void keeper_listing_fini(struct keeper_listing *l);
enum keeper_presence keeper_listing_sandbox(const struct keeper_listing *l, const char *id);
bool keeper_listing_has_layer(const struct keeper_listing *l, const char *id);

#endif
