/* SPDX-License-Identifier: Apache-2.0 */
/* API keys, and what is told of them in the events. The keys themselves are nowhere: only their
 * hashes are kept. */
#ifndef LODGE_ADMIT_API_KEY_H
#define LODGE_ADMIT_API_KEY_H

#include "engine/engine.h"

/* An empty k->id is given one ("key_..."), and created_at the time. ERR_CONFLICT if the id or the
 * hash is there. */
int api_key_add(struct engine *e, const char *actor, struct store_key *k, struct err *err);
int api_key_find(struct engine *e, const uint8_t hash[STORE_HASH], struct store_key *ret,
		 struct err *err);
int api_key_get(struct engine *e, const char *id, struct store_key *ret, struct err *err);
/* Of one tenant unless NULL. */
int api_key_list(struct engine *e, const char *tenant, struct store_page page,
		 struct store_key_list *ret, struct err *err);
int api_key_remove(struct engine *e, const char *actor, const struct store_key *k, struct err *err);
/* The same for people: ERR_CONFLICT of the last that may do everything and does not expire, without
 * which everybody is locked out. */
int api_key_retire(struct engine *e, const char *actor, const struct store_key *k, struct err *err);
/* Whether there is such a one besides `but` (NULL: at all). */
int api_key_has_admin(struct engine *e, const char *but, bool *ret, struct err *err);
bool api_key_is_expired(struct engine *e, const struct store_key *k); /* it has expired */

#endif
