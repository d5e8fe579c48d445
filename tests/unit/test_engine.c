/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with a real keeper and a real sandbox: commands, files, jobs, adoption. Needs
 * $LODGE_BUILD (meson sets it) and a machine where sandboxes work. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "one_sandbox.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/files_client.h"
#include "sandbox/agent_sync.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"
#include "sandbox_calls.h"

static int sh(const char *text, struct guest_exec_output *o)
{
	struct guest_exec_spec spec = { .text = text, .timeout_ms = 120000 };

	return guest_exec_run(box, &spec, NULL, 0, o, &err);
}

static bool says(const char *text, const char *want)
{
	struct guest_exec_output o;
	bool same;

	if (sh(text, &o) < 0)
		return false;
	same = !strcmp(o.out, want);
	if (!same)
		printf("# got '%s', want '%s'\n", o.out, want);
	guest_exec_output_fini(&o);
	return same;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void a_command_has_output_status_and_usage(void)
{
	struct guest_exec_output o;

	ENGINE();
	CHECK(sh("echo out; echo err >&2; exit 7", &o) == 0);
	CHECK_STR(o.out, "out\n");
	CHECK_STR(o.err, "err\n");
	CHECK(o.result.code == 7 && o.result.signal == 0 && o.result.hits == 0);
	CHECK(o.result.duration_us > 0 && o.out_total == 4);
	guest_exec_output_fini(&o);
}

static void input_of_any_size_arrives(void)
{
	struct guest_exec_spec spec = { .argv = (const char *const[]){ "wc", "-c", NULL } };
	struct guest_exec_output o;
	size_t size = 3 * AGENT_DATA_MAX + 17;
	char *data = calloc(1, size);

	ENGINE();
	CHECK(data && guest_exec_run(box, &spec, data, size, &o, &err) == 0);
	CHECK(strtoul(o.out, NULL, 10) == size);
	guest_exec_output_fini(&o);
	CHECK(guest_exec_run(box, &spec, "", 0, &o, &err) == 0);
	CHECK_STR(o.out, "0\n");
	guest_exec_output_fini(&o);
	free(data);
}

static void a_missing_command_differs_from_a_failing_one(void)
{
	struct guest_exec_spec spec = { .argv = (const char *const[]){ "no-such-thing", NULL } };
	struct guest_exec *x = NULL;

	ENGINE();
	CHECK(guest_exec_start(box, &spec, &x, &err) == -1 && !x);
	CHECK(err.code == ERR_NOT_FOUND);
}

static void the_oldest_output_is_dropped_without_a_reader(void)
{
	struct guest_exec_spec spec = { .text = "seq 100000", .log_bytes = 4096 };
	struct guest_exec_output o;

	ENGINE();
	CHECK(guest_exec_run(box, &spec, NULL, 0, &o, &err) == 0);
	CHECK(o.out_total == 588895 && o.out_len <= 4096 && o.out_len > 2048);
	CHECK(!strcmp(o.out + o.out_len - 7, "100000\n"));
	guest_exec_output_fini(&o);
}

static void a_holding_reader_gets_every_byte(void)
{
	struct guest_exec_spec spec = { .text = "seq 100000", .log_bytes = 8192, .hold = true };
	struct guest_exec *x = NULL;
	uint64_t at = 0, sum = 0;
	char buf[3000];
	ssize_t n;

	ENGINE();
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0);
	for (;;) {
		while ((n = guest_exec_read(x, GUEST_EXEC_OUT, &at, buf, sizeof(buf))) > 0) {
			for (ssize_t i = 0; i < n; i++)
				sum += (unsigned char)buf[i];
			CHECK(guest_exec_consumed(x, at, 0, &err) == 0);
		}
		if (*guest_exec_ended(x) && at == guest_exec_end(x, GUEST_EXEC_OUT))
			break;
		CHECK(agent_step(sandbox_agent(box), 120000, &err) == 0);
	}
	CHECK(at == 588895 && sum == 26716961);
	guest_exec_free(x);
}

static void signals_and_deadlines(void)
{
	struct guest_exec_spec spec = { .text = "sleep 30" };
	struct guest_exec *x = NULL;

	ENGINE();
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0 && guest_exec_pid(x) > 1);
	CHECK(guest_exec_wait(x, 50, &err) == -1 && err.code == ERR_TIMEOUT);
	CHECK(guest_exec_state(x) == GUEST_EXEC_RUNNING);
	CHECK(guest_exec_signal(x, SIGTERM, AGENT_TO_GROUP, &err) == 0 &&
	      guest_exec_wait(x, 120000, &err) == 0);
	CHECK(guest_exec_result(x)->code == -1 && guest_exec_result(x)->signal == SIGTERM);
	guest_exec_free(x);
	spec.timeout_ms = 100;
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0 && guest_exec_wait(x, 120000, &err) == 0);
	CHECK(guest_exec_result(x)->hits & AGENT_HIT_TIME);
	guest_exec_free(x);
}

static void several_commands_at_once(void)
{
	struct guest_exec_spec spec = { .text = "read x; echo got $x", .stdin_open = true };
	struct guest_exec *x[8];
	char buf[64];

	ENGINE();
	for (int i = 0; i < 8; i++)
		CHECK(guest_exec_start(box, &spec, &x[i], &err) == 0);
	for (int i = 7; i >= 0; i--) {
		uint64_t at = 0;
		char line[16];
		int n = snprintf(line, sizeof(line), "%d\n", i);
		ssize_t got;

		CHECK(guest_exec_stdin(x[i], line, (size_t)n, true, &err) == 0);
		CHECK(guest_exec_wait(x[i], 120000, &err) == 0);
		got = guest_exec_read(x[i], GUEST_EXEC_OUT, &at, buf, sizeof(buf));
		CHECK(got == 6 && buf[4] == '0' + i);
		guest_exec_free(x[i]);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static void whole_files(void)
{
	void *data = NULL;
	size_t len;

	ENGINE();
	CHECK(files_write(box, NULL, "a/b/c.txt", "hello", 5, AGENT_PARENTS, 0600, &err) == 0);
	CHECK(says("stat -c %a a/b/c.txt; cat a/b/c.txt", "600\nhello"));
	CHECK(files_append(box, NULL, "a/b/c.txt", " you", 4, 0, &err) == 0);
	CHECK(files_read(box, NULL, "/home/user/a/b/c.txt", 100, &data, &len, &err) == 0);
	CHECK(len == 9 && !memcmp(data, "hello you", 9));
	free(data);
	CHECK(files_read(box, NULL, "a/b/c.txt", 8, &data, &len, &err) == -1);
	CHECK(err.code == ERR_LIMIT);
	CHECK(files_read(box, NULL, "no/such", 8, &data, &len, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(files_write(box, NULL, "a/b/c.txt", "x", 1, AGENT_NOREPLACE, 0, &err) == -1);
	CHECK(err.code == ERR_CONFLICT);
	CHECK(files_write(box, NULL, "/usr/x", "x", 1, 0, 0, &err) == -1);
}

static void only_files_are_opened(void)
{
	struct guest_exec_output o;
	int fd = -1;

	ENGINE();
	CHECK(sh("mkfifo fifo; ln -s /dev/zero zero", &o) == 0);
	guest_exec_output_fini(&o);
	CHECK(files_open(box, NULL, "fifo", AGENT_READ, 0, &fd, &err) == -1 && fd == -1);
	CHECK(files_open(box, NULL, "zero", AGENT_READ, 0, &fd, &err) == -1 && fd == -1);
	CHECK(!agent_is_closed(sandbox_agent(box)));
}

static void an_aborted_put_leaves_nothing(void)
{
	struct files_put *p = NULL;

	ENGINE();
	CHECK(files_mkdir(box, NULL, "puts", false, 0, &err) == 0);
	CHECK(files_put_new(box, NULL, "puts/f", 0, 0, &p, &err) == 0);
	CHECK(write(files_put_fd(p), "half", 4) == 4);
	files_put_free(p);
	CHECK(says("ls -A puts", ""));
	CHECK(files_put_new(box, NULL, "puts/f", 0, 0644, &p, &err) == 0);
	CHECK(write(files_put_fd(p), "whole", 5) == 5 && files_put_commit(p, &err) == 0);
	files_put_free(p);
	CHECK(says("cat puts/f; ls -A puts", "wholef\n"));
}

static void names_and_modes(void)
{
	struct files_stat st;

	ENGINE();
	CHECK(files_mkdir(box, NULL, "d/e/f", true, 0, &err) == 0);
	CHECK(files_mkdir(box, NULL, "d", false, 0, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(files_symlink(box, NULL, "e/\xff\n", "d/link", &err) == 0);
	CHECK(files_stat(box, NULL, "d/link", false, &st, &err) == 0);
	CHECK(S_ISLNK(st.st.mode) && st.target);
	CHECK_STR(st.target, "e/\xff\n");
	free(st.target);
	CHECK(files_stat(box, NULL, "d/link", true, &st, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(files_rename(box, NULL, "d/link", "d/link2", true, &err) == 0);
	CHECK(files_rename(box, NULL, "d/link2", "d/e", false, &err) == -1);
	CHECK(files_chmod(box, NULL, "d/e", 0700, &err) == 0);
	CHECK(files_stat(box, NULL, "d/e", true, &st, &err) == 0 && st.st.mode == (S_IFDIR | 0700));
	CHECK(files_remove(box, NULL, "d", &err) == -1);
	CHECK(files_remove(box, NULL, "d/link2", &err) == 0);
	CHECK(files_remove_tree(box, NULL, "d", &err) == 0);
	CHECK(files_remove_tree(box, NULL, "d", &err) == 0);
	CHECK(files_remove(box, NULL, "", &err) == -1 && err.code == ERR_INVALID);
}

static int note(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	char *all = arg;

	(void)st;
	strcat(all, path);
	if (target)
		strcat(strcat(all, ">"), target);
	strcat(all, "|");
	return strstr(path, "stop") ? 42 : 0;
}

static void lists(void)
{
	struct guest_exec_output o;
	char all[1024] = "";

	ENGINE();
	CHECK(sh("mkdir -p l/b/c; touch l/a l/b/x l/$'new\\nline'; ln -s t l/z", &o) == 0);
	guest_exec_output_fini(&o);
	CHECK(files_list(box, NULL, "l", 1, note, all, &err) == 0);
	CHECK_STR(all, "a|b|new\nline|z>t|");
	all[0] = '\0';
	CHECK(files_list(box, NULL, "l", 9, note, all, &err) == 0);
	CHECK_STR(all, "a|b|b/c|b/x|new\nline|z>t|");
	CHECK(files_list(box, NULL, "no-such", 1, note, all, &err) == -1);
	CHECK(sh("touch l/stop", &o) == 0);
	guest_exec_output_fini(&o);
	CHECK(files_list(box, NULL, "l", 1, note, all, &err) == 42);
}

static void archives_are_packed_and_unpacked(void)
{
	struct guest_exec_output o;
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	ENGINE();
	CHECK(fd >= 0);
	CHECK(sh("mkdir -p t/s; head -c 300000 /dev/urandom > t/s/r; ln -s s t/l; chmod 640 t/s/r",
		 &o) == 0);
	guest_exec_output_fini(&o);
	CHECK(files_tar_out(box, NULL, "t", fd, &err) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && files_mkdir(box, NULL, "t2", false, 0, &err) == 0);
	CHECK(files_tar_in(box, NULL, "t2", fd, 0, &err) == 0);
	CHECK(says("diff -r t t2 && stat -c %a t2/s/r && readlink t2/l", "640\ns\n"));
	CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, "nonsense", 8, 0) == 8 &&
	      lseek(fd, 0, SEEK_SET) == 0);
	CHECK(files_tar_in(box, NULL, "t2", fd, 0, &err) == -1);
	close(fd);
}

static void watches(void)
{
	struct files_watch *w = NULL;
	struct files_change c;
	bool created = false;

	ENGINE();
	CHECK(files_mkdir(box, NULL, "w", false, 0, &err) == 0);
	CHECK(files_watch_new(box, NULL, "w", true, &w, &err) == 0);
	CHECK(files_watch_next(w, 50, &c, &err) == 0);
	CHECK(files_write(box, NULL, "w/new", "x", 1, 0, 0, &err) == 0);
	for (int i = 0; i < 20 && !created; i++) {
		CHECK(files_watch_next(w, 5000, &c, &err) == 1);
		created = c.kind == AGENT_CHANGE_CREATE && !strcmp(c.path, "new");
	}
	CHECK(created);
	files_watch_free(w);
	CHECK(says("echo alive", "alive\n"));
	CHECK(files_watch_new(box, NULL, "no-such", true, &w, &err) == -1);
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

static void stats_and_freezing(void)
{
	struct keeper_stats st;
	struct guest_exec_spec spec = { .text = "echo thawed" };
	struct guest_exec *x = NULL;
	unsigned features;

	ENGINE();
	CHECK(keeper_client_features(keeper, &features, &err) == 0);
	CHECK(sandbox_stats(box, &st, &err) == 0);
	if (!(features & KEEPER_HAS_CGROUP))
		SKIP("needs cgroups");
	CHECK(st.pids >= 1 && st.memory_bytes > 0);
	CHECK(sandbox_set_frozen(keeper, box, true, &err) == 0);
	CHECK(guest_exec_begin(box, &spec, &x, &err) == 0);
	CHECK(guest_exec_wait(x, 200, &err) == -1 && err.code == ERR_TIMEOUT);
	CHECK(sandbox_set_frozen(keeper, box, false, &err) == 0 &&
	      guest_exec_wait(x, 120000, &err) == 0);
	guest_exec_free(x);
}

static void a_second_connection_finds_the_same_sandbox(void)
{
	struct sandbox *again = NULL;
	struct guest_exec_spec spec = { .text = "echo $$ second" };
	struct guest_exec_output o;

	ENGINE();
	CHECK(sandbox_connect(keeper, sandbox_id(box), &again, &err) == 0);
	CHECK(guest_exec_run(again, &spec, NULL, 0, &o, &err) == 0);
	CHECK(strstr(o.out, "second"));
	guest_exec_output_fini(&o);
	sandbox_free(again);
	CHECK(agent_hello(sandbox_agent(box), NULL, &err) == 0); /* it has numbered commands too */
	CHECK(says("echo first", "first\n"));
	CHECK(sandbox_connect(keeper, "no-such-box", &again, &err) == -1);
}

static void output_can_be_read_after_the_end_of_the_sandbox(void)
{
	struct sandbox_spec how = sandbox_spec_default();
	struct guest_exec_spec spec = { .text = "echo kept; sleep 100" };
	struct sandbox *sb = NULL;
	struct guest_exec *x = NULL;
	uint64_t at = 0;
	char buf[16];

	ENGINE();
	CHECK(sandbox_new(keeper, &how, &sb, &err) == 0 &&
	      guest_exec_start(sb, &spec, &x, &err) == 0);
	while (guest_exec_end(x, GUEST_EXEC_OUT) < 5)
		CHECK(agent_step(sandbox_agent(sb), 120000, &err) == 0);
	CHECK(sandbox_destroy(sb, &err) == 0);
	CHECK(guest_exec_wait(x, 120000, &err) == -1 && err.code == ERR_UNAVAILABLE);
	sandbox_free(sb);
	CHECK(guest_exec_read(x, GUEST_EXEC_OUT, &at, buf, sizeof(buf)) == 5 &&
	      !memcmp(buf, "kept\n", 5));
	CHECK(guest_exec_signal(x, SIGTERM, AGENT_TO_GROUP, &err) == -1);
	guest_exec_free(x);
}

static void destroying_is_idempotent(void)
{
	ENGINE();
	CHECK(sandbox_destroy(box, &err) == 0 && sandbox_destroy(box, &err) == 0);
}

int main(void)
{
	open_engine();
	RUN(a_command_has_output_status_and_usage);
	RUN(input_of_any_size_arrives);
	RUN(a_missing_command_differs_from_a_failing_one);
	RUN(the_oldest_output_is_dropped_without_a_reader);
	RUN(a_holding_reader_gets_every_byte);
	RUN(signals_and_deadlines);
	RUN(several_commands_at_once);
	RUN(whole_files);
	RUN(only_files_are_opened);
	RUN(an_aborted_put_leaves_nothing);
	RUN(names_and_modes);
	RUN(lists);
	RUN(archives_are_packed_and_unpacked);
	RUN(watches);
	RUN(stats_and_freezing);
	RUN(a_second_connection_finds_the_same_sandbox);
	RUN(output_can_be_read_after_the_end_of_the_sandbox);
	RUN(destroying_is_idempotent);
	close_engine();
	return tap_done();
}
