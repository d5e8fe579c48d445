/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with a real keeper; needs root. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file_io.h"
#include "sandbox/guest_exec.h"
#include "sandbox/guest_exec_internal.h"
#include "sandbox/files_client.h"
#include "sandbox/keeper_client.h"
#include "sandbox/keeper_spawn.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"
#include "stands_still.h"
#include "tap.h"
#include "tmp_name.h"
#include "sandbox_calls.h"

static char home[TMP_NAME_SIZE];
static struct keeper_client *keeper;
static struct err err;

static bool start_keeper(bool oneshot)
{
	struct keeper_client_opts o = { .home = home, .oneshot = oneshot };

	return keeper_client_spawn(&o, &keeper, &err) == 0;
}

static void stop_keeper(void)
{
	keeper_client_free(keeper);
	keeper = NULL;
}

static struct sandbox *make(const char *id)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;

	spec.id = id;
	if (sandbox_new(keeper, &spec, &sb, &err) < 0)
		printf("# %s\n", err.msg);
	return sb;
}

static void unmake(struct sandbox *sb)
{
	if (sb)
		(void)sandbox_destroy(sb, &err);
	sandbox_free(sb);
}

/* Runs bash text; returns the output, which the caller frees, or NULL. */
static char *run(struct sandbox *sb, const char *text, int *ret_code)
{
	struct guest_exec_spec x = { .text = text, .timeout_ms = 120000 };
	struct guest_exec_output out;

	if (guest_exec_run(sb, &x, NULL, 0, &out, &err) < 0) {
		printf("# %s\n", err.msg);
		return NULL;
	}
	*ret_code = out.result.code;
	free(out.err);
	return out.out;
}

static bool says(struct sandbox *sb, const char *text, const char *want)
{
	int code = -1;
	char *got = run(sb, text, &code);
	bool ok = got && code == 0 && strcmp(got, want) == 0;

	if (!ok)
		printf("# '%s' said '%s' (%d)\n", text, got ? got : "nothing", code);
	free(got);
	return ok;
}

static void a_sandbox_runs_commands_and_keeps_files_between_them(void)
{
	struct sandbox *sb = make(NULL);

	CHECK(sb != NULL);
	CHECK(says(sb, "echo one > f; echo two", "two\n"));
	CHECK(says(sb, "cat f", "one\n"));
	unmake(sb);
}

static void two_sandboxes_share_nothing(void)
{
	struct sandbox *a = make("one"), *b = make("two");

	CHECK(a && b);
	CHECK(says(a, "echo x | tee /tmp/f /dev/shm/f ~/f; sleep 100 >/dev/null 2>&1 & echo y",
		   "x\ny\n"));
	CHECK(says(b, "ls /tmp /dev/shm ~; ps -e -o comm= | grep -c sleep || true",
		   "/dev/shm:\n\n/home/user:\n\n/tmp:\n0\n"));
	unmake(a);
	unmake(b);
}

static void an_id_is_used_once(void)
{
	struct sandbox *a = make("same"), *b = make("same");

	CHECK(a && !b && err.code == ERR_CONFLICT);
	unmake(a);
	a = make("same");
	CHECK(a != NULL);
	unmake(a);
}

static void an_unknown_sandbox_is_reported(void)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;
	struct keeper_request req = keeper_client_request(KEEPER_DESTROY, "nosuch");
	struct keeper_reply reply;

	spec.template = "no-such-template";
	CHECK(sandbox_new(keeper, &spec, &sb, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(strstr(err.msg, "no-such-template") != NULL);
	CHECK(sandbox_connect(keeper, "nosuch", &sb, &err) < 0 && err.code == ERR_NOT_FOUND);
	CHECK(keeper_client_call(keeper, &req, NULL, 0, &reply, NULL, &err) == 0 && !reply.found);
}

static void freezing_stops_its_processes(void)
{
	struct sandbox *sb = make(NULL);
	struct keeper_stats before, after;

	CHECK(sb != NULL);
	CHECK(says(sb, "while :; do :; done >/dev/null 2>&1 & echo", "\n"));
	CHECK(sandbox_set_frozen(keeper, sb, true, &err) == 0);
	CHECK(stands_still(sb, &after, &err));
	CHECK(sandbox_set_frozen(keeper, sb, false, &err) == 0);
	before = after;
	for (int i = 0; i < 1200 && after.cpu_us <= before.cpu_us; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		CHECK(sandbox_stats(sb, &after, &err) == 0);
	}
	CHECK(after.cpu_us > before.cpu_us && after.pids >= 2);
	unmake(sb);
}

static void limits_of_a_running_sandbox_can_change(void)
{
	struct sandbox *sb = make(NULL);
	struct limits l = limits_default();

	CHECK(sb != NULL);
	l.pids = 4;
	CHECK(sandbox_set_limits(keeper, sb, &l, &err) == 0);
	CHECK(says(sb,
		   "perl -e 'for (1..20) { my $p = fork; defined $p or last; $p or sleep(1), exit; "
		   "$n++ }"
		   " print $n < 20 ? qq(fewer\\n) : qq(all\\n)'",
		   "fewer\n"));
	l.pids = 200;
	CHECK(sandbox_set_limits(keeper, sb, &l, &err) == 0);
	CHECK(says(sb, "ls / | wc -l | grep -q . && echo works", "works\n"));
	unmake(sb);
}

static void a_pool_is_claimed_by_any_request_and_never_reused(void)
{
	const struct keeper_pool two = { 2, 2, 4, 0 };
	struct keeper_pool_state st;
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *a = NULL, *b = NULL;

	CHECK(keeper_client_pool(keeper, two, &st, &err) == 0);
	CHECK(st.ready == 2);
	spec.hostname = "claimed";
	spec.limits.pids = 50;
	CHECK(sandbox_new(keeper, &spec, &a, &err) == 0);
	CHECK(sandbox_source(a) == KEEPER_SOURCE_POOL);
	CHECK(says(a, "hostname; echo secret > /tmp/s; touch ~/mine", "claimed\n"));
	CHECK(sandbox_destroy(a, &err) == 0);
	/* the keeper fills its pool only when it has nothing else to do */
	CHECK(keeper_client_pool(keeper, two, &st, &err) == 0);
	CHECK(sandbox_new(keeper, &spec, &b, &err) == 0);
	CHECK(says(b, "ls -A /tmp ~", "/home/user:\n\n/tmp:\n"));
	unmake(b);
	sandbox_free(a);
	CHECK(keeper_client_pool(keeper, (struct keeper_pool){ 0, 0, 0, 0 }, &st, &err) == 0);
	CHECK(st.ready == 0 && st.hits == 2);
}

static void a_sandbox_outlives_its_keeper(void)
{
	struct sandbox *sb = make("survivor"), *again = NULL;
	struct guest_exec_spec x = {
		.text = "echo begin; sleep 0.5; echo end > /tmp/done; echo end"
	};
	struct guest_exec *e = NULL;
	pid_t pid;

	CHECK(sb != NULL);
	pid = sandbox_pid(sb);
	CHECK(guest_exec_start(sb, &x, &e, &err) == 0);
	guest_exec_free(e);
	sandbox_free(sb);
	stop_keeper();
	CHECK(kill(pid, 0) == 0);
	CHECK(start_keeper(false));
	CHECK(sandbox_connect(keeper, "survivor", &again, &err) == 0);
	CHECK(sandbox_pid(again) == pid);
	CHECK(says(again, "while ! [ -s /tmp/done ]; do sleep 0.05; done; cat /tmp/done", "end\n"));
	unmake(again);
}

static void a_spare_shell_takes_the_next_text(void)
{
	struct sandbox *sb = make(NULL);
	struct guest_exec_spec x = { .text = "echo $0 $#; exit 3" };
	struct guest_exec *e = NULL;
	bool used_spare_shell = false;

	CHECK(sb != NULL);
	CHECK(guest_exec_set_spare_shell(sb, &x, &err) == 0);
	for (int i = 0; i < 2400 && !used_spare_shell; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		CHECK(guest_exec_start(sb, &x, &e, &err) == 0);
		CHECK(guest_exec_wait(e, 120000, &err) == 0);
		CHECK(guest_exec_result(e)->code == 3 &&
		      guest_exec_end(e, GUEST_EXEC_OUT) == strlen("bash 0\n"));
		used_spare_shell = e->used_spare_shell;
		guest_exec_free(e);
	}
	CHECK(used_spare_shell);
	x.cwd = "/tmp"; /* another directory needs another shell */
	CHECK(guest_exec_start(sb, &x, &e, &err) == 0);
	CHECK(!e->used_spare_shell);
	CHECK(guest_exec_wait(e, 120000, &err) == 0);
	guest_exec_free(e);
	unmake(sb);
}

static void names_of_the_keeper_are_refused(void)
{
	static const char *const ids[] = { "g.1", "p.1", "t.1" };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		CHECK(make(ids[i]) == NULL);
		CHECK(err.code == ERR_INVALID);
	}
}

static void a_home_that_others_can_write_to_is_refused(void)
{
	char shared[TMP_NAME_SIZE];
	struct keeper_client_opts o = { .home = shared, .oneshot = true };
	struct keeper_client *k = NULL;
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;
	struct stat st;

	CHECK(mkdtemp(tmp_name(shared, "lodge-test")) != NULL && chmod(shared, 0775) == 0);
	CHECK(keeper_client_spawn(&o, &k, &err) < 0 || sandbox_new(k, &spec, &sb, &err) < 0);
	CHECK(strstr(err.msg, "not be writable by group or others") != NULL);
	keeper_client_free(k);
	CHECK(rmdir(shared) == 0); /* nothing was created there */
	CHECK(stat(home, &st) == 0 && (st.st_mode & 0777) == 0700);
}

static int start_closed(void *arg, int *ret_fd, int *ret_pidfd, struct err *e)
{
	return keeper_spawn(NULL, home, false, arg, ret_fd, ret_pidfd, e);
}

/* A descriptor from the engine was opened with other permissions than the keeper has. */
static void a_closed_keeper_shows_no_directory_of_the_host(void)
{
	struct keeper_client_opts o = { .home = home, .start = start_closed };
	struct sandbox_bind bind = { .path = "/mnt" };
	struct sandbox_spec spec = sandbox_spec_default(), plain = spec;
	struct keeper_client *k = NULL;
	struct sandbox *sb = NULL;
	struct stat st;
	char id[40], other[] = "1.1";

	CHECK(stat(home, &st) == 0);
	snprintf(id, sizeof(id), "%llx.%llx", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	stop_keeper();
	o.start_arg = id;
	CHECK(keeper_client_spawn(&o, &k, &err) == 0);
	bind.fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	spec.binds = &bind;
	spec.nbinds = 1;
	CHECK(sandbox_new(k, &spec, &sb, &err) < 0 && err.code == ERR_DENIED);
	CHECK(sandbox_new(k, &plain, &sb, &err) == 0); /* everything else works */
	unmake(sb);
	close(bind.fd);
	keeper_client_free(k);
	k = NULL;
	o.start_arg = other; /* its home is not the directory it was started for */
	CHECK(keeper_client_spawn(&o, &k, &err) < 0 || sandbox_new(k, &plain, &sb, &err) < 0);
	keeper_client_free(k);
	CHECK(start_keeper(false));
}

/* The OOM killer kills all processes that share a victim's memory, but never PID 1. */
static void out_of_memory_kills_the_command_not_the_sandbox(void)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb = NULL;
	int code;

	spec.limits.memory_bytes = 32 << 20;
	CHECK(sandbox_new(keeper, &spec, &sb, &err) == 0);
	for (int i = 0; i < 8; i++)
		free(run(sb, "head -c 31M /dev/zero > /tmp/fill; exec tail /dev/zero", &code));
	CHECK(says(sb, "rm -f /tmp/fill; echo alive", "alive\n"));
	unmake(sb);
}

static void files_are_written_and_read(void)
{
	struct sandbox *sb = make(NULL);

	CHECK(sb != NULL);
	CHECK(files_mkdir(sb, NULL, "a/b", true, 0, &err) == 0);
	CHECK(says(sb, "test -d ~/a/b && echo there", "there\n"));
	unmake(sb);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	if (!mkdtemp(tmp_name(home, "lodge-test")) || !start_keeper(false)) {
		printf("Bail out! %s\n", err.msg);
		return 99;
	}
	RUN(a_sandbox_runs_commands_and_keeps_files_between_them);
	RUN(two_sandboxes_share_nothing);
	RUN(an_id_is_used_once);
	RUN(an_unknown_sandbox_is_reported);
	RUN(freezing_stops_its_processes);
	RUN(limits_of_a_running_sandbox_can_change);
	RUN(a_pool_is_claimed_by_any_request_and_never_reused);
	RUN(a_sandbox_outlives_its_keeper);
	RUN(a_spare_shell_takes_the_next_text);
	RUN(names_of_the_keeper_are_refused);
	RUN(a_home_that_others_can_write_to_is_refused);
	RUN(a_closed_keeper_shows_no_directory_of_the_host);
	RUN(out_of_memory_kills_the_command_not_the_sandbox);
	RUN(files_are_written_and_read);
	stop_keeper();
	(void)file_remove_tree_at(AT_FDCWD, home);
	return tap_done();
}
