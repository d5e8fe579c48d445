/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of running sandboxes, and other jobs on layers that run beside the keeper. */
#include "sandbox/layer_client.h"

#include "layer_text.h"
#include "stands_still.h"
#include "sandbox_calls.h"

static void a_running_sandbox_is_copied(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;

	KEEPER();
	FREEZER();
	x = make("x", NULL, 0, false);
	CHECK(says(x, "echo 1 >/tmp/one; chmod 640 /tmp/one; ln /tmp/one /tmp/two", ""));
	CHECK(snap("x", "i1"));
	CHECK(says(x, "echo 2 >/tmp/one; cat /tmp/two", "2\n")); /* it keeps running */
	y = make("y", LAYER("i1"), 1, false);
	CHECK(says(y, "cat /tmp/two; stat -c '%a %u %h' /tmp/one", "1\n640 1000 2\n"));
	CHECK(layer_snap(keeper, "x", "i1", NULL, &(struct keeper_job){ 0 }, &err) == -1);
	CHECK(err.code == ERR_CONFLICT);
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && becomes(KEEPER_IS_FILES, "x"));
	CHECK(snap("x", "i2")); /* of a stopped one too */
	CHECK(destroy("x") == 1 && destroy("y") == 1);
	CHECK(layer_drop(keeper, "i1", &err) == 0 && layer_drop(keeper, "i2", &err) == 0);
}

static void a_sandbox_that_cannot_be_frozen_is_not_copied(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL;

	KEEPER();
	if (can_freeze)
		SKIP("everything can be frozen here");
	x = make("x", NULL, 0, false);
	CHECK(x && !snap("x", "i1") && err.code == ERR_UNAVAILABLE);
	CHECK(says(x, "echo on >/tmp/x", "") && layer_stop(keeper, "x", NULL, &err) == 0);
	CHECK(becomes(KEEPER_IS_FILES, "x") && snap("x", "i1"));
	CHECK(destroy("x") == 1 && layer_drop(keeper, "i1", &err) == 0);
}

static void a_frozen_sandbox_stays_frozen(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL;
	struct keeper_stats st;

	KEEPER();
	FREEZER();
	x = make("x", NULL, 0, false);
	CHECK(says(x, "(while :; do :; done) >/dev/null 2>&1 & echo up", "up\n"));
	CHECK(sandbox_set_frozen(keeper, x, true, &err) == 0 && snap("x", "j1"));
	CHECK(stands_still(x, &st, &err));
	CHECK(sandbox_set_frozen(keeper, x, false, &err) == 0 && says(x, "echo on", "on\n"));
	CHECK(destroy("x") == 1 && layer_drop(keeper, "j1", &err) == 0);
}

static void layers_are_measured_merged_and_written_out(void)
{
	static const char *const both[] = { "m2", "m1" };
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;
	struct keeper_job job = { 0 };
	uint64_t bytes = 0;
	int file = open(home, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct stat st;

	KEEPER();
	CHECK(write_and_stop("m", "head -c 300000 /dev/urandom >/tmp/big; echo 1 >/tmp/one") &&
	      seal("m", "m1"));
	CHECK(layer_sync(keeper, "m1", &err) == 0 && wait_job("m1", &bytes) == 0);
	CHECK(bytes >= 300000 && bytes < 1000000);
	CHECK(layer_job(keeper, "m1", &job, &err) == 0 && job.state == KEEPER_JOB_NONE);
	x = make("x", LAYER("m1"), 1, false);
	CHECK(says(x, "rm /tmp/one; echo 2 >/tmp/two", ""));
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && seal("x", "m2"));
	CHECK(layer_merge(keeper, "m3", both, 2, &job, &err) == 0);
	CHECK(job.state == KEEPER_JOB_DONE || wait_job("m3", NULL) == 0);
	CHECK(layer_drop(keeper, "m1", &err) == 0 && layer_drop(keeper, "m2", &err) == 0);
	y = make("y", LAYER("m3"), 1, false);
	CHECK(says(y, "ls /tmp; stat -c %s /tmp/big", "big\ntwo\n300000\n"));
	CHECK(layer_export(keeper, "tar", LAYER("m3"), 1, file, &err) == 0);
	CHECK(wait_job("tar", NULL) == 0 && fstat(file, &st) == 0 && st.st_size > 300000);
	close(file);
	CHECK(destroy("y") == 1 && layer_drop(keeper, "m3", &err) == 0);
}

static void jobs_are_limited_and_fail_separately(void)
{
	static const char *const from = "p1", *const names[] = { "t0", "t1" };
	int ends[2][2], dir = open("/", O_RDONLY | O_CLOEXEC);

	KEEPER();
	CHECK(write_and_stop("p", "head -c 300000 /dev/urandom >/tmp/big") && seal("p", "p1"));
	for (int i = 0; i < 2; i++) {
		CHECK(pipe2(ends[i], O_CLOEXEC) == 0);
		CHECK(layer_export(keeper, names[i], &from, 1, ends[i][1], &err) == 0);
		close(ends[i][1]);
	}
	CHECK(layer_export(keeper, "t2", &from, 1, 1, &err) == -1);
	CHECK(err.code == ERR_UNAVAILABLE && err.sys == EBUSY);
	CHECK(layer_drop(keeper, "p1", &err) == -1 && err.sys == EBUSY); /* the jobs read it */
	CHECK(!make("x", LAYER("p1"), 1, true) && err.sys == EBUSY);
	CHECK(layer_export(keeper, "t0", &from, 1, 1, &err) == -1);
	for (int i = 0; i < 2; i++) {
		close(ends[i][0]);
		CHECK(wait_job(names[i], NULL) == -1 && err.sys == EPIPE);
	}
	CHECK(layer_export(keeper, "t0", &from, 1, dir, &err) == -1 && err.code == ERR_INVALID);
	close(dir);
	CHECK(layer_merge(keeper, "p2", LAYER("none"), 1, &(struct keeper_job){ 0 }, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND && layer_drop(keeper, "p1", &err) == 0);
}

/* ---- interrupted jobs ------------------------------------------------------------------------ */

static struct sandbox *make_written(void)
{
	struct sandbox *sb = make("x", NULL, 0, false);

	if (says(sb, "echo 1 >/tmp/one", ""))
		return sb;
	sandbox_free(sb);
	return NULL;
}

static void a_copy_ends_with_its_sandbox(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL;
	struct keeper_job job = { 0 };

	KEEPER();
	FREEZER();
	HOLD_JOBS();
	x = make_written();
	CHECK(x && layer_snap(keeper, "x", "n1", NULL, &job, &err) == 0);
	CHECK(job.state == KEEPER_JOB_RUNNING && destroy("x") == 1);
	CHECK(wait_job("n1", NULL) == -1 && err.code == ERR_CONFLICT);
	CHECK(listed(KEEPER_IS_LAYER, "n1") == 0);
}

static void a_dropped_layer_is_not_finished(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL;
	struct keeper_job job = { 0 };

	KEEPER();
	FREEZER();
	HOLD_JOBS();
	x = make_written();
	CHECK(x && layer_snap(keeper, "x", "n1", NULL, &job, &err) == 0);
	CHECK(job.state == KEEPER_JOB_RUNNING);
	CHECK(sandbox_set_frozen(keeper, x, true, &err) == 0 &&
	      sandbox_set_frozen(keeper, x, false, &err) == 0);
	CHECK(layer_drop(keeper, "n1", &err) == 0);
	CHECK(wait_job("n1", NULL) == -1 && err.code == ERR_CONFLICT);
	CHECK(listed(KEEPER_IS_LAYER, "n1") == 0);
	CHECK(says(x, "cat /tmp/one", "1\n")); /* no longer frozen */
	CHECK(destroy("x") == 1);
}

static void a_sandbox_is_not_left_frozen(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;
	struct keeper_job job = { 0 };

	KEEPER();
	FREEZER();
	HOLD_JOBS();
	x = make_written();
	CHECK(x && layer_snap(keeper, "x", "n1", NULL, &job, &err) == 0);
	CHECK(job.state == KEEPER_JOB_RUNNING && restart_keeper());
	CHECK(sandbox_connect(keeper, "x", &y, &err) == 0);
	CHECK(says(y, "cat /tmp/one", "1\n"));
	CHECK(destroy("x") == 1 && layer_drop(keeper, "n1", &err) == 0);
}

static void all(void)
{
	RUN_LAYERS(a_running_sandbox_is_copied);
	RUN_LAYERS(a_sandbox_that_cannot_be_frozen_is_not_copied);
	RUN_LAYERS(a_frozen_sandbox_stays_frozen);
	RUN_LAYERS(layers_are_measured_merged_and_written_out);
	RUN_LAYERS(jobs_are_limited_and_fail_separately);
	RUN_LAYERS(a_copy_ends_with_its_sandbox);
	RUN_LAYERS(a_dropped_layer_is_not_finished);
	RUN_LAYERS(a_sandbox_is_not_left_frozen);
}

int main(void)
{
	in_store(false, all);
	in_store(true, all);
	return tap_done();
}
