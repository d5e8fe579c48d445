/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/columns.h"
#include "store/store.h"

/* Lists of records that own nothing, and of those that do. */
#define PLAIN_LIST(name)                                                                           \
	void store_##name##_list_fini(struct store_##name##_list *l)                               \
	{                                                                                          \
		free(l->items);                                                                    \
		*l = (struct store_##name##_list){ 0 };                                            \
	}
#define OWNING_LIST(name)                                                                          \
	void store_##name##_list_fini(struct store_##name##_list *l)                               \
	{                                                                                          \
		for (size_t i = 0; i < l->count; i++)                                              \
			store_##name##_fini(&l->items[i]);                                         \
		free(l->items);                                                                    \
		*l = (struct store_##name##_list){ 0 };                                            \
	}

OWNING_LIST(session)
OWNING_LIST(exec)
OWNING_LIST(event)
OWNING_LIST(file)
OWNING_LIST(policy)
PLAIN_LIST(layer)
PLAIN_LIST(snapshot)
PLAIN_LIST(project)
PLAIN_LIST(fragment)
PLAIN_LIST(user)
PLAIN_LIST(member)
PLAIN_LIST(key)

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

void store_exec_fini(struct store_exec *e)
{
	columns_fini(&columns_exec, e);
}

void store_event_fini(struct store_event *e)
{
	columns_fini(&columns_event, e);
}

void store_policy_fini(struct store_policy *p)
{
	columns_fini(&columns_policy, p);
}

void store_environment_fini(struct store_environment *v)
{
	columns_fini(&columns_environment, v);
}

void store_file_fini(struct store_file *f)
{
	free(f->path);
	free(f->data);
	*f = (struct store_file){ 0 };
}
