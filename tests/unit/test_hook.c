/* SPDX-License-Identifier: Apache-2.0 */
/* This test always compiles the hooks in; tests/tools/run checks that object files have none
 * without the option. */
#ifndef LODGE_TEST_HOOKS
#define LODGE_TEST_HOOKS 1
#endif
#include "base/test_hook.h"

#include <sys/wait.h>

#include "tap.h"
#include "tmp_name.h"

enum { CAME_BACK = 7, YES = 1, NO = 2 };

/* The variables are read once, so each case runs in its own process. */
static int in_child(const char *crash, const char *weaken, int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		unsetenv("LODGE_CRASH_AT");
		unsetenv("LODGE_WEAKEN");
		if (crash)
			setenv("LODGE_CRASH_AT", crash, 1);
		if (weaken)
			setenv("LODGE_WEAKEN", weaken, 1);
		_exit(fn());
	}
	waitpid(pid, &status, 0);
	return status;
}

static int reach_the_step(void)
{
	hook_crash("mount.root");
	return CAME_BACK;
}

static int ask_for_caps(void)
{
	return hook_weak("caps") ? YES : NO;
}

static int count_environment(void)
{
	int n = 0;

	for (char **e = hook_env(); *e; e++)
		n++;
	return n;
}

static void only_the_named_step_kills(void)
{
	int status = in_child("mount.root", NULL, reach_the_step);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(WEXITSTATUS(in_child("mount", NULL, reach_the_step)) == CAME_BACK);
	CHECK(WEXITSTATUS(in_child("mount.root2", NULL, reach_the_step)) == CAME_BACK);
	CHECK(WEXITSTATUS(in_child(NULL, NULL, reach_the_step)) == CAME_BACK);
}

static void only_the_named_wall_is_left_out(void)
{
	CHECK(WEXITSTATUS(in_child(NULL, "caps", ask_for_caps)) == YES);
	CHECK(WEXITSTATUS(in_child(NULL, "nnp,caps,seccomp", ask_for_caps)) == YES);
	CHECK(WEXITSTATUS(in_child(NULL, "nocaps,capsx,,cap", ask_for_caps)) == NO);
	CHECK(WEXITSTATUS(in_child(NULL, "", ask_for_caps)) == NO);
	CHECK(WEXITSTATUS(in_child(NULL, NULL, ask_for_caps)) == NO);
}

static int hold_at_the_step(void)
{
	hook_hold("job");
	return CAME_BACK;
}

static void the_named_step_waits_for_its_file(void)
{
	char path[TMP_NAME_SIZE], value[TMP_NAME_SIZE + 16];
	int fd = mkstemp(tmp_name(path, "lodge-hold")), status;
	pid_t pid;

	CHECK(fd >= 0);
	close(fd);
	snprintf(value, sizeof(value), "jobs=%s", path);
	CHECK(setenv("LODGE_HOLD_AT", value, 1) == 0 && hold_at_the_step() == CAME_BACK);
	snprintf(value, sizeof(value), "job=%s", path);
	CHECK(setenv("LODGE_HOLD_AT", value, 1) == 0);
	pid = fork();
	if (pid == 0)
		_exit(hold_at_the_step());
	CHECK(pid > 0 && waitpid(pid, &status, WNOHANG) == 0);
	CHECK(unlink(path) == 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WEXITSTATUS(status) == CAME_BACK);
	unsetenv("LODGE_HOLD_AT");
}

static void init_gets_only_the_two_variables(void)
{
	CHECK(WEXITSTATUS(in_child(NULL, NULL, count_environment)) == 0);
	CHECK(WEXITSTATUS(in_child("x", NULL, count_environment)) == 1);
	CHECK(WEXITSTATUS(in_child("x", "caps", count_environment)) == 2);
}

int main(void)
{
	RUN(only_the_named_step_kills);
	RUN(only_the_named_wall_is_left_out);
	RUN(the_named_step_waits_for_its_file);
	RUN(init_gets_only_the_two_variables);
	return tap_done();
}
