/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/columns.h"
#include "store/store.h"

void store_session_fini(struct store_session *s)
{
	columns_fini(&columns_session, s);
	free(s->bindings);
	s->bindings = NULL;
	s->nbindings = 0;
}

int store_session_copy(const struct store_session *s, struct store_session *ret, struct err *err)
{
	struct store_session copy;

	if (columns_copy(&columns_session, s, &copy, err) < 0)
		return -1;
	copy.bindings = NULL;
	if (s->nbindings > 0) {
		copy.bindings = reallocarray(NULL, s->nbindings, sizeof(*copy.bindings));
		if (!copy.bindings) {
			columns_fini(&columns_session, &copy);
			return err_sys(err, ENOMEM, "copy of a session");
		}
		memcpy(copy.bindings, s->bindings, s->nbindings * sizeof(*copy.bindings));
	}
	*ret = copy;
	return 0;
}

void store_file_fini(struct store_file *f)
{
	free(f->path);
	free(f->data);
	*f = (struct store_file){ 0 };
}

#define RECORD(name)                                                                               \
	void store_##name##_fini(struct store_##name *r)                                           \
	{                                                                                          \
		columns_fini(&columns_##name, r);                                                  \
	}
#define LIST(name)                                                                                 \
	void store_##name##_list_fini(struct store_##name##_list *l)                               \
	{                                                                                          \
		for (size_t i = 0; i < l->count; i++)                                              \
			store_##name##_fini(&l->items[i]);                                         \
		free(l->items);                                                                    \
		*l = (struct store_##name##_list){ 0 };                                            \
	}

#define RECORD_AND_LIST(name) RECORD(name) LIST(name)

LIST(session)
LIST(file)
RECORD(environment)
RECORD_AND_LIST(exec)
RECORD_AND_LIST(row)
RECORD_AND_LIST(user_row)
RECORD_AND_LIST(team_row)
RECORD_AND_LIST(tenant_sum)
RECORD_AND_LIST(event)
RECORD_AND_LIST(policy)
RECORD_AND_LIST(layer)
RECORD_AND_LIST(snapshot)
RECORD_AND_LIST(project)
RECORD_AND_LIST(fragment)
RECORD_AND_LIST(user)
RECORD_AND_LIST(member)
RECORD_AND_LIST(key)
