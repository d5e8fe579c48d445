/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/environment_request.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/internal.h"

void environment_want(struct engine *e, const char *template, bool changed)
{
	struct environment_wish *w = NULL;

	if (!e->opts.environments)
		return;
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ARRAY_LEN(e->wishes) && !w; i++)
		if (strcmp(e->wishes[i].template, template) == 0)
			w = &e->wishes[i];
	if (!w || changed) {
		if (!w)
			w = &e->wishes[e->nwishes++ % ARRAY_LEN(e->wishes)];
		snprintf(w->template, sizeof(w->template), "%s", template);
		w->due = true;
	}
	pthread_mutex_unlock(&e->mutex);
}
