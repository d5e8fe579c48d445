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
	for (size_t i = 0; i < ARRAY_LEN(e->environment_requests) && !w; i++)
		if (strcmp(e->environment_requests[i].template, template) == 0)
			w = &e->environment_requests[i];
	if (!w || changed) {
		if (!w)
			w = &e->environment_requests[e->nenvironment_requests++ %
						     ARRAY_LEN(e->environment_requests)];
		snprintf(w->template, sizeof(w->template), "%s", template);
		w->due = true;
	}
	pthread_mutex_unlock(&e->mutex);
}
