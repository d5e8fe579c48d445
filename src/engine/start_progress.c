/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start_progress.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/one_line.h"
#include "engine/internal.h"

static const char *const names[] = {
	[PROGRESS_PENDING] = "pending",
	[PROGRESS_RUNNING] = "running",
	[PROGRESS_READY] = "ready",
	[PROGRESS_ERROR] = "error",
};

const char *progress_status_name(enum progress_status s)
{
	return names[s];
}

/* NULL: not known. */
static struct start_stage *find(struct start_progress *p, const char *session)
{
	if (!*session)
		return p->engine.at ? &p->engine : NULL;
	for (size_t i = 0; i < ARRAY_LEN(p->sessions); i++)
		if (strcmp(p->sessions[i].session, session) == 0)
			return &p->sessions[i];
	return NULL;
}

static struct start_stage *get_slot(struct start_progress *p, const char *session)
{
	struct start_stage *g = *session ? find(p, session) : &p->engine;

	if (g)
		return g;
	g = &p->sessions[0];
	for (size_t i = 1; i < ARRAY_LEN(p->sessions); i++)
		if (p->sessions[i].at < g->at)
			g = &p->sessions[i];
	snprintf(g->session, sizeof(g->session), "%s", session);
	return g;
}

static enum progress_status parse_status(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return (enum progress_status)i;
	return PROGRESS_RUNNING;
}

struct progress_state progress_make(struct engine *e, const char *status, const char *stage,
				    const char *message, unsigned step, unsigned total)
{
	struct progress_state now = { .status = parse_status(status),
				      .step = step,
				      .total_steps = total,
				      .updated = engine_now(e) };

	snprintf(now.stage, sizeof(now.stage), "%s", stage);
	one_line_print(message, now.message, sizeof(now.message));
	if (now.status == PROGRESS_ERROR)
		memcpy(now.error, now.message, sizeof(now.error));
	return now;
}

void progress_publish(struct engine *e, const char *session, const struct progress_state *now)
{
	struct start_progress *p = &e->progress;
	struct start_stage *g;

	MUTEX_GUARD(&p->mutex);
	g = get_slot(p, session ? session : "");
	g->at = ++p->count;
	g->state = *now;
}

void progress_report(struct engine *e, const char *session, const char *status, const char *stage,
		     const char *message, unsigned step, unsigned total)
{
	struct progress_state now = progress_make(e, status, stage, message, step, total);

	progress_publish(e, session, &now);
}

int progress_get(struct engine *e, const char *session, struct progress_state *ret, struct err *err)
{
	const struct start_stage *g;

	MUTEX_GUARD(&e->progress.mutex);
	g = find(&e->progress, session ? session : "");
	if (!g)
		return err_set(err, ERR_NOT_FOUND, "no start in progress for this session");
	*ret = g->state;
	return 0;
}
