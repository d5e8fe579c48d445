/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lib_at.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/lib_opts.h"

void at_free(struct at *a)
{
	if (a)
		side_conn_close(a->loan);
	free(a);
}
int at_resolve(const struct at *a, const char *path, char ret[AGENT_PATH_MAX])
{
	const char *dir = side_conn_template(a->loan)->workdir;
	int n = path[0] == '/' || !dir ? snprintf(ret, AGENT_PATH_MAX, "%s", path)
				       : snprintf(ret, AGENT_PATH_MAX, "%s/%s", dir, path);

	if (n < 0 || n >= AGENT_PATH_MAX)
		return err_set(&last, ERR_INVALID, "path: longer than %d bytes",
			       AGENT_PATH_MAX - 1);
	return 0;
}

int at_check_path(const char *what, const char *path)
{
	return path && path[0] ? 0 : err_set(&last, ERR_INVALID, "%s: missing", what);
}

struct at *at_new(struct lodge *l, const struct lodge_ref *ref, const char *path)
{
	auto_call(at_free) struct at *a = NULL;
	struct session_ref r;

	last_outcome = 0;
	if (lib_get_ref(ref, &r) < 0 || at_check_path("path", path) < 0)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a) {
		err_sys(&last, ENOMEM, "%s", path);
		return NULL;
	}
	if (side_conn_open(l->engine, &l->caller, &r, true, &a->loan, &last_outcome, &last) < 0)
		return NULL;
	a->sb = side_conn_sandbox(a->loan);
	a->user = side_conn_template(a->loan)->user;
	return at_resolve(a, path, a->path) == 0 ? steal_ptr(&a) : NULL;
}
