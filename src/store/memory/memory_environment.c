/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/memory/memory.h"

static struct store_environment *of(struct mem *m, const char *template)
{
	return mem_first(&m->environment, MEM_MATCH(MEM_IS(store_environment, template, template)));
}

static int environment_put(struct store *st, const struct store_environment *v, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_environment *row = of(m, v->template), new;

	if (check_environment(v, err) < 0)
		return -1;
	if (!row)
		return mem_add(m, &m->environment, v, err) ? 0 : -1;
	if (columns_copy(&shape_environment, v, &new, err) < 0)
		return -1;
	columns_fini(&shape_environment, row);
	*row = new;
	m->changes++;
	return 0;
}

static int environment_get(struct store *st, const char *template, struct store_environment *ret,
			   struct err *err)
{
	struct mem *m = mem_of(st);

	return mem_give(&m->environment, of(m, template), ret, "environment of", template, err);
}

static int environment_remove(struct store *st, const char *template, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	(void)mem_drop_all(m, &m->environment,
			   MEM_MATCH(MEM_IS(store_environment, template, template)));
	return 0;
}

const struct store_environment_ops memory_environment_ops = {
	.put = environment_put,
	.get = environment_get,
	.remove = environment_remove,
};
