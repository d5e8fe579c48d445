/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/environment_request.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/internal.h"

void environment_request_add(struct engine *e, const char *template, bool changed)
{
	struct environment_request *w = NULL;

	if (!e->opts.environments)
		return;
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->environments.items) && !w; i++)
		if (strcmp(e->environments.items[i].template, template) == 0)
			w = &e->environments.items[i];
	if (!w || changed) {
		if (!w)
			w = &e->environments.items[e->environments.nadded++ %
						   ARRAY_LEN(e->environments.items)];
		snprintf(w->template, sizeof(w->template), "%s", template);
		w->due = true;
	}
	pthread_mutex_unlock(&e->mutex);
}
