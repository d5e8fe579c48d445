/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks: from the key in a request's head to its record, and how much it may ask. Records are
 * remembered for moments, so that not each request needs the store. */
#ifndef LODGE_API_CORE_AUTH_H
#define LODGE_API_CORE_AUTH_H

#include "api/core/api_call.h"

struct auth;

struct auth_opts {
	struct engine *engine;
	unsigned rate, burst, concurrent; /* as in struct api_opts */
};
int auth_new(const struct auth_opts *opts, struct auth **ret, struct err *err);
void auth_free(struct auth *a); /* NULL is allowed */
DEFINE_AUTO(struct auth *, auth_free);

/* The one key of a request's head (NULL: no such header). ERR_DENIED with sys ENOKEY if there is
 * none, ERR_INVALID if it cannot be one, with sys ENOTUNIQ if there are two. */
int auth_pick(const char *authorization, const char *x_api_key, const char **ret, struct err *err);

struct auth_pass { /* of one request */
	struct auth *auth;
	int slot; /* -1: none */
	struct store_key key;
	enum api_scope scope;
	char session[STORE_ID]; /* the only one, else empty */
};
/* ERR_DENIED with sys EKEYREJECTED or EKEYEXPIRED; ERR_LIMIT with sys EUSERS: too many requests.
 * auth_leave() when the request is over; of zeros it does nothing. */
int auth_enter(struct auth *a, const char *key, const char *peer, struct auth_pass *ret,
	       struct err *err);
void auth_leave(struct auth_pass *p);
/* Whether it would be let in again. When the store cannot tell, it would. */
bool auth_holds(const struct auth_pass *p);
void auth_forget(struct auth *a, const char *id); /* a key that was removed */

/* What a key's scopes allow: "admin", "tenant", "session", "session:ID". */
int auth_scope(const char *scopes, enum api_scope *ret, char ret_session[STORE_ID],
	       struct err *err);

/* ---- keys.c ------------------------------------------------------------------------------------
 */

enum { KEY_TEXT = 72 }; /* "lk_" and 64 digits */
int api_key_generate(char ret[KEY_TEXT], struct err *err);
int api_key_hash(const char *key, uint8_t ret[STORE_HASH], struct err *err);

#endif
