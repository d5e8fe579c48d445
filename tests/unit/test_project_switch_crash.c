/* SPDX-License-Identifier: Apache-2.0 */
/* The engine is killed at every step of a switch. The next one finds the user on a complete
 * sandbox, the old or the new one, and nothing left over. Needs a build with -Dtest_hooks=true. */
#include <signal.h>
#include <sys/wait.h>

#include "base/array.h"
#include "engine/internal.h"
#include "service/engine_open.h"
#include "switch_fixture.h"
#include "project/project_switch.h"
#include "project/switch_commit.h"

/* Opens the home as it was left. The keeper of the previous engine may still be running. */
static bool take_over(void)
{
	struct engine_opts o = {
		.home = home, .keeper_program = keeper, .no_threads = true, .clock = fake_time
	};

	for (int i = 0; i < 1200; i++) {
		if (engine_open(&o, &engine, &err) == 0)
			return true;
		if (err.code != ERR_CONFLICT && err.code != ERR_UNAVAILABLE)
			break;
		nap(100);
	}
	printf("# taking over: %s\n", err.msg);
	return false;
}

/* What the other process does: it is killed at the step in LODGE_CRASH_AT. */
static int crash(const char *where, const char *project, const char *fragment)
{
	const char *build = getenv("LODGE_BUILD");
	struct switch_result s;

	the_time = (long long)time(NULL) * 1000;
	snprintf(keeper, sizeof(keeper), "%s/lodge-keeper", build ? build : "build");
	snprintf(home, sizeof(home), "%s", where);
	if (!take_over())
		return 3;
	return go(project, *fragment ? fragment : NULL, &s) ? 0 : 4;
}

static bool crash_at(const char *step, const char *project, const char *fragment)
{
	pid_t pid;
	int status;

	close_engine();
	pid = fork();
	if (pid == 0) {
		setenv("LODGE_CRASH_AT", step, 1);
		execl("/proc/self/exe", "crash", home, project, fragment, NULL);
		_exit(5);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (!WIFSIGNALED(status)) {
		printf("# at %s: status %d\n", step, WEXITSTATUS(status));
		return false;
	}
	return take_over() && switch_recover(engine, &err) == 0;
}

/* Every key leads to one session, no session has a mark, and the user has an active one. Sessions
 * with a tombstone are left to the sweep. */
static bool is_consistent(size_t sessions)
{
	struct store_session_filter f = { .tenant = me.tenant };
	struct store_session_list l;
	size_t whole = 0, other = 0;

	if (session_list(engine, &f, (struct store_page){ .limit = 100 }, &l, &err) < 0)
		return false;
	for (size_t i = 0; i < l.count; i++) {
		const struct store_session *s = &l.items[i];

		if (s->state == SESSION_DESTROYING)
			continue;
		if (!s->metadata && s->nbindings > 0) {
			whole++;
			continue;
		}
		other++;
		printf("# %s of %s is %s, with %zu keys, %s\n", s->id, s->project,
		       state_machine_name(&session_states, s->state), s->nbindings,
		       s->metadata ? s->metadata : "no mark");
	}
	store_session_list_fini(&l);
	return whole == sessions && other == 0;
}

static void a_crash_before_the_swap_changes_nothing(void)
{
	static const char *const steps[] = { "switch:checked", "enter:created", "resume:recorded",
					     "resume:made",    "resume:ready",	"switch:made",
					     "switch:restored" };
	struct switch_result a, again;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		ENGINE(0);
		(void)project_remove(engine, &me, "ann", "a", &err);
		(void)project_remove(engine, &me, "ann", "b", &err);
		CHECK(two_projects() && go("a", NULL, &a));
		CHECK(here("echo u >unsaved; sleep 1000 >&- 2>&- & :", ""));
		CHECK(crash_at(steps[i], "b", "fb"));
		CHECK(untouched(&a, 1) && is_consistent(1) && ann_is_at("a", "fa"));
		CHECK(go("b", "fb", &again) && here(FILES, "./b.txt\n") && is_consistent(2));
	}
}

static void a_crash_after_the_swap_loses_nothing(void)
{
	static const char *const steps[] = { "switch:pointed", "switch:marked", "switch:copied",
					     "switch:swapped", "switch:done",	"destroy:recorded",
					     "destroy:removed" };
	struct switch_result a, b, s;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		ENGINE(0);
		(void)project_remove(engine, &me, "ann", "a", &err);
		(void)project_remove(engine, &me, "ann", "b", &err);
		CHECK(two_projects() && go("b", NULL, &b) && go("a", NULL, &a));
		CHECK(here("echo u >unsaved", ""));
		/* replaces a hibernated working copy */
		CHECK(crash_at(steps[i], "b", "fb") && is_consistent(2) && ann_is_at("b", "fb"));
		CHECK(here(FILES, "./b.txt\n") && here("echo w >work", ""));
		CHECK(refers_to("project", "ann/a", a.session));
		CHECK(go("a", NULL, &s) && here("cat unsaved", "u\n"));
		CHECK(go("b", NULL, &s) && here("cat work", "w\n") && is_consistent(2));
		/* replaces the active session */
		CHECK(crash_at(steps[i], "b", "fb") && is_consistent(2) && ann_is_at("b", "fb"));
		CHECK(here(FILES, "./b.txt\n"));
	}
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return crash(argv[1], argv[2], argv[3]);
	make_home();
#ifndef LODGE_TEST_HOOKS
	why_not = "needs a build with -Dtest_hooks=true";
#endif
	RUN(a_crash_before_the_swap_changes_nothing);
	RUN(a_crash_after_the_swap_loses_nothing);
	remove_home();
	return tap_done();
}
