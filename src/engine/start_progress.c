/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/one_line.h"
#include "engine/internal.h"

struct stage {
	char session[STORE_ID]; /* "": free, or the engine's own */
	uint64_t at; /* rises: the smallest is the oldest; 0: nothing was reported */
	struct progress_state state;
};

struct start_progress {
	pthread_mutex_t mutex; /* taken last, like the workers' */
	uint64_t count;
	struct stage engine, sessions[ENGINE_STAGES_MAX];
};

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

int progress_init(struct engine *e)
{
	struct start_progress *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->mutex, NULL);
	e->progress = p;
	return 0;
}

void progress_fini(struct engine *e)
{
	struct start_progress *p = e->progress;

	if (!p)
		return;
	pthread_mutex_destroy(&p->mutex);
	free(p);
	e->progress = NULL;
}

/* NULL: not known. */
static struct stage *find(struct start_progress *p, const char *session)
{
	if (!*session)
		return p->engine.at ? &p->engine : NULL;
	for (size_t i = 0; i < ARRAY_LEN(p->sessions); i++)
		if (strcmp(p->sessions[i].session, session) == 0)
			return &p->sessions[i];
	return NULL;
}

static struct stage *get_slot(struct start_progress *p, const char *session)
{
	struct stage *g = *session ? find(p, session) : &p->engine;

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
	const char *of = session ? session : "";
	struct start_progress *p = e->progress;
	struct stage *g;

	pthread_mutex_lock(&p->mutex);
	g = get_slot(p, of);
	g->at = ++p->count;
	g->state = *now;
	pthread_mutex_unlock(&p->mutex);
}

void progress_report(struct engine *e, const char *session, const char *status, const char *stage,
		     const char *message, unsigned step, unsigned total)
{
	struct progress_state now = progress_make(e, status, stage, message, step, total);

	progress_publish(e, session, &now);
}

int progress_get(struct engine *e, const char *session, struct progress_state *ret, struct err *err)
{
	struct start_progress *p = e->progress;
	const struct stage *g;

	pthread_mutex_lock(&p->mutex);
	g = find(p, session ? session : "");
	if (g)
		*ret = g->state;
	pthread_mutex_unlock(&p->mutex);
	return g ? 0 : err_set(err, ERR_NOT_FOUND, "no start in progress for this session");
}
