/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/environment_request.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/internal.h"

void environment_request_add(struct engine *e, const char *template, bool changed)
{
	struct environment_requests *all = &e->environments;
	struct environment_request *w = NULL;

	if (!e->opts.environments)
		return;
	MUTEX_GUARD(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(all->items) && !w; i++)
		if (strcmp(all->items[i].template, template) == 0)
			w = &all->items[i];
	if (w && !changed)
		return;
	if (!w)
		w = &all->items[all->nadded++ % ARRAY_LEN(all->items)];
	snprintf(w->template, sizeof(w->template), "%s", template);
	w->due = true;
}
