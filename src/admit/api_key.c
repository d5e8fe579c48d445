/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/api_key.h"

#include <stdio.h>
#include <string.h>

#include "engine/audit.h"
#include "engine/internal.h"
#include "engine/name_lock.h"

/* The event comes first: every usable key has one. */
int api_key_add(struct engine *e, const char *actor, struct store_key *k, struct err *err)
{
	char text[STORE_TEXT];
	int r = -1;

	if (!*k->id && id_generate("key_", k->id, err) < 0)
		return -1;
	k->created_at = engine_now(e);
	snprintf(text, sizeof(text), "key %s (%.128s)", k->id, k->scopes);
	WITH_STORE(e, st)
	r = audit_append(st, k->created_at, k->tenant, "key_add", actor, text, err) < 0
		    ? -1
		    : store_key_add(st, k, err);
	return r;
}

int api_key_find(struct engine *e, const uint8_t hash[STORE_HASH], struct store_key *ret,
		 struct err *err)
{
	return STORE_CALL(e, store_key_find, hash, ret, err);
}

int api_key_list(struct engine *e, const char *tenant, struct store_page page,
		 struct store_key_list *ret, struct err *err)
{
	return STORE_CALL(e, store_key_list, tenant, page, ret, err);
}

/* The first key that fn accepts: 1; none: 0. */
static int find_key(struct engine *e, bool (*fn)(const void *arg, const struct store_key *k),
		    const void *arg, struct store_key *ret, struct err *err)
{
	struct store_page page = { .limit = STORE_PAGE_MAX };
	bool found = false;

	do {
		struct store_key_list l;

		if (api_key_list(e, NULL, page, &l, err) < 0)
			return -1;
		for (size_t i = 0; i < l.count && !found; i++) {
			found = fn(arg, &l.items[i]);
			if (found)
				*ret = l.items[i];
		}
		page.after = l.next;
		store_key_list_fini(&l);
	} while (!found && page.after);
	return found;
}

static bool is_id(const void *id, const struct store_key *k)
{
	return strcmp(k->id, id) == 0;
}

int api_key_get(struct engine *e, const char *id, struct store_key *ret, struct err *err)
{
	int r = find_key(e, is_id, id, ret, err);

	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "no key %.64s", id);
	return r < 0 ? -1 : 0;
}

int api_key_remove(struct engine *e, const char *actor, const struct store_key *k, struct err *err)
{
	char text[STORE_TEXT];
	int r = -1;

	snprintf(text, sizeof(text), "key %s", k->id);
	WITH_STORE(e, st)
	{
		r = store_key_remove(st, k->id, err);
		if (r == 0)
			r = audit_append(st, engine_now(e), k->tenant, "key_remove", actor, text,
					 err);
	}
	return r;
}

static bool is_other_admin(const void *but, const struct store_key *k)
{
	return strcmp(k->scopes, "admin") == 0 && !k->expires_at && (!but || !is_id(but, k));
}

int api_key_has_admin(struct engine *e, const char *but, bool *ret, struct err *err)
{
	struct store_key ignored;
	int r = find_key(e, is_other_admin, but, &ignored, err);

	if (r < 0)
		return -1;
	*ret = r;
	return 0;
}

/* Locked: two removals must not each count on the other key. */
int api_key_retire(struct engine *e, const char *actor, const struct store_key *k, struct err *err)
{
	auto_fini(name_unlock) struct name_lock lock;
	bool other = strcmp(k->scopes, "admin") != 0;

	name_lock(e, &lock, "keys", NULL, "");
	if (!other && api_key_has_admin(e, k->id, &other, err) < 0)
		return -1;
	return other ? api_key_remove(e, actor, k, err)
		     : err_set(err, ERR_CONFLICT,
			       "cannot remove the last key with scope \"admin\"");
}

bool api_key_is_expired(struct engine *e, const struct store_key *k)
{
	return k->expires_at && k->expires_at <= engine_now(e);
}
