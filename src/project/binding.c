/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that lead to a user's sessions. */
#include "project/binding.h"

#include <stdio.h>
#include <string.h>

struct store_binding binding_of_user(const char *user)
{
	struct store_binding key = { .kind = "user" };

	snprintf(key.key, sizeof(key.key), "%s", user);
	return key;
}

int binding_of_copy(const char *user, const char *project, struct store_binding *ret,
		    struct err *err)
{
	struct store_binding key = { .kind = "project" };
	char escaped[3 * STORE_USER], *to = escaped;

	for (; *user && to < escaped + sizeof(escaped) - 4; user++) {
		if (*user == '/' || *user == '%') {
			memcpy(to, *user == '/' ? "%2F" : "%25", 3);
			to += 3;
		} else {
			*to++ = *user;
		}
	}
	*to = '\0';
	if (snprintf(key.key, sizeof(key.key), "%s/%s", escaped, project) >= (int)sizeof(key.key))
		return err_set(err, ERR_INVALID,
			       "user: too long, because '/' and '%%' take three bytes each");
	*ret = key;
	return 0;
}

int binding_find_session(struct engine *e, const struct caller *caller,
			 const struct store_binding *key, char ret[STORE_ID], struct err *err)
{
	struct store_session s = { 0 };
	int r = err_set(err, ERR_NOT_FOUND, "no session with %s '%s'", key->kind, key->key);

	r = STORE_CALL(e, store_session_find, caller->tenant, key, &s, err);
	if (r < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	snprintf(ret, STORE_ID, "%s", r < 0 ? "" : s.id);
	store_session_fini(&s);
	return 0;
}
