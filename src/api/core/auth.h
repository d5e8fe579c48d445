/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication: finds the record of a request's key and applies its limits. Records are cached
 * briefly, so most requests need no database access. */
#ifndef LODGE_API_CORE_AUTH_H
#define LODGE_API_CORE_AUTH_H

#include "api/core/api_call.h"

struct auth;

int auth_new(const struct api_opts *opts, struct auth **ret, struct err *err);
void auth_free(struct auth *a); /* NULL is allowed */
DEFINE_AUTO(struct auth *, auth_free);

/* Picks the key from the headers (NULL: missing header). ERR_DENIED with sys ENOKEY: no key.
 * ERR_INVALID: malformed, with sys ENOTUNIQ: two keys. */
int auth_pick(const char *authorization, const char *x_api_key, const char **ret, struct err *err);

struct auth_pass { /* an authenticated request */
	struct auth *auth;
	int slot; /* -1: none */
	struct store_key key;
	enum api_scope scope;
	char session[STORE_ID]; /* if not empty: the only session it may use */
};
/* ERR_DENIED with sys EKEYREJECTED or EKEYEXPIRED; ERR_LIMIT with sys EUSERS: rate limit. Call
 * auth_leave() at the end of the request; it does nothing for a zero-initialized pass. */
int auth_enter(struct auth *a, const char *key, const char *peer, struct auth_pass *ret,
	       struct err *err);
/* The same for a request that does not count for the limits of the key. */
int auth_identify(struct auth *a, const char *key, const char *peer, struct auth_pass *ret,
		  struct err *err);
void auth_leave(struct auth_pass *p);
/* Whether the key is still valid. True if the database does not respond. */
bool auth_holds(const struct auth_pass *p);
void auth_forget(struct auth *a, const char *id); /* drops a removed key from the cache */

/* Parses the scope of a key: "admin", "tenant", "session", "session:ID". */
int auth_scope(const char *scopes, enum api_scope *ret, char ret_session[STORE_ID],
	       struct err *err);

/* ---- keys ------------------------------------------------------------------------------------ */

enum { KEY_TEXT = 72 }; /* "lk_" and 64 digits */
int auth_generate_key(char ret[KEY_TEXT], struct err *err);
/* Keys have 256 random bits. They cannot be guessed from a dictionary, so one fast hash is enough.
 */
int auth_hash_key(const char *key, uint8_t ret[STORE_HASH], struct err *err);
int api_sha256(const char *bytes, size_t len, uint8_t ret[STORE_HASH], struct err *err);

#endif
