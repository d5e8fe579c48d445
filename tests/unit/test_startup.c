/* SPDX-License-Identifier: Apache-2.0 */
/* An engine whose keeper cannot be started at first. */
#include <errno.h>

#include "service/service_admin.h"
#include "engine/start_progress.h"
#include "service/engine_open.h"
#include "service/startup.h"
#include "session_engine.h"

static atomic_uint failures, successes, finals;

static void begun(void *arg, const struct err *why, int64_t again_ms)
{
	(void)arg;
	successes += !why;
	failures += why != NULL;
	finals += why && !again_ms;
}

static void reset(void)
{
	clean();
	close_engine();
	failures = successes = finals = 0;
}

static bool prepare(const char *program)
{
	struct engine_opts o = {
		.home = home, .keeper_program = program, .no_threads = true, .queue_max = 1
	};

	return engine_open_store(&o, &engine, &err) == 0;
}

static bool becomes_at_least(atomic_uint *what, unsigned n)
{
	for (int i = 0; i < 6000 && *what < n; i++)
		nap(20);
	return *what >= n;
}

static void the_store_is_locked_first(void)
{
	struct progress_state p;
	struct engine *second = NULL;
	struct engine_opts o = { .home = home };

	if (why_not)
		SKIP(why_not);
	reset();
	CHECK(prepare(keeper) && !engine_is_ready(engine));
	CHECK(progress_get(engine, NULL, &p, &err) == 0 && p.status == PROGRESS_RUNNING);
	CHECK_STR(p.stage, "store");
	CHECK(engine_open_store(&o, &second, &err) == -1 && !second);
	CHECK(engine_wait_ready(engine, 0, &err) == -1 && err.code == ERR_TIMEOUT &&
	      err.sys == EINPROGRESS);
	close_engine(); /* it never started */
}

static void callers_wait_for_the_start(void)
{
	struct progress_state p;

	if (why_not)
		SKIP(why_not);
	reset();
	CHECK(prepare(keeper) && engine_start(engine, begun, NULL, &err) == 0);
	CHECK(engine_wait_ready(engine, 120000, &err) == 0 && engine_is_ready(engine));
	CHECK(becomes_at_least(&successes, 1) && !failures);
	CHECK(engine_wait_ready(engine, 0, &err) == 0);
	CHECK(progress_get(engine, NULL, &p, &err) == 0 && p.status == PROGRESS_READY);
	CHECK(p.step == 4 && p.total_steps == 4);
	CHECK(enter("a"));
}

static void starting_a_missing_keeper_is_retried(void)
{
	char program[sizeof(home) + 16];
	struct progress_state p;
	struct err last;
	unsigned tries;

	if (why_not)
		SKIP(why_not);
	reset();
	snprintf(program, sizeof(program), "%s/keeper-of-mine", home);
	(void)unlink(program);
	CHECK(prepare(program) && !engine_start_error(engine, &last, &tries));
	CHECK(engine_start(engine, begun, NULL, &err) == 0);
	CHECK(becomes_at_least(&failures, 1) && !finals && !engine_is_ready(engine));
	CHECK(engine_start_error(engine, &last, &tries) && tries >= 1 && *last.msg);
	CHECK(progress_get(engine, NULL, &p, &err) == 0 && p.step == 2);
	CHECK_STR(p.stage, "keeper");
	/* a call waits although a try fails, and then names the reason */
	CHECK(engine_wait_ready(engine, 500, &err) == -1 && err.code == ERR_TIMEOUT &&
	      err.sys == EINPROGRESS && strstr(err.msg, "keeper"));
	CHECK(symlink(keeper, program) == 0);
	for (int i = 0; i < 40 && !engine_is_ready(engine); i++)
		(void)engine_wait_ready(engine, 1000, &err);
	CHECK(engine_is_ready(engine) && becomes_at_least(&successes, 1));
	CHECK(enter("a"));
	clean();
	CHECK(unlink(program) == 0);
}

static void an_engine_that_retries_can_be_closed(void)
{
	if (why_not)
		SKIP(why_not);
	reset();
	CHECK(prepare("/nowhere/keeper") && engine_start(engine, begun, NULL, &err) == 0);
	CHECK(becomes_at_least(&failures, 3)); /* by now the pauses grow */
	close_engine();
	CHECK(!successes && !finals);
}

int main(void)
{
	make_home();
	RUN(the_store_is_locked_first);
	RUN(callers_wait_for_the_start);
	RUN(starting_a_missing_keeper_is_retried);
	RUN(an_engine_that_retries_can_be_closed);
	remove_home();
	return tap_done();
}
