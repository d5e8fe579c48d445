/* SPDX-License-Identifier: Apache-2.0 */
/* API keys. Only their hashes are stored. */
#ifndef LODGE_ADMIT_API_KEY_H
#define LODGE_ADMIT_API_KEY_H

#include "engine/engine.h"

/* Generates k->id ("key_...") if it is empty, and sets created_at. ERR_CONFLICT if the id or the
 * hash exists. */
int api_key_add(struct engine *e, const char *actor, struct store_key *k, struct err *err);
int api_key_find(struct engine *e, const uint8_t hash[STORE_HASH], struct store_key *ret,
		 struct err *err);
int api_key_get(struct engine *e, const char *id, struct store_key *ret, struct err *err);
/* Of one tenant unless NULL. */
int api_key_list(struct engine *e, const char *tenant, struct store_page page,
		 struct store_key_list *ret, struct err *err);
int api_key_remove(struct engine *e, const char *actor, const struct store_key *k, struct err *err);
/* The same on request of a person: ERR_CONFLICT for the last admin key that does not expire,
 * because nobody could administrate the service without it. */
int api_key_retire(struct engine *e, const char *actor, const struct store_key *k, struct err *err);
/* Whether there is such a key besides `but` (NULL: at all). */
int api_key_has_admin(struct engine *e, const char *but, bool *ret, struct err *err);
bool api_key_is_expired(struct engine *e, const struct store_key *k);

#endif
