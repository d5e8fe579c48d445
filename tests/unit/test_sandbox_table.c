/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "tmp_name.h"

static char dir[TMP_NAME_SIZE];
static int fd = -1;
static struct sandbox_table table;

static struct sandbox_record sample(const char *id)
{
	struct sandbox_record b = { .pid = 42,
				    .start = 4242,
				    .base = 0x40000000,
				    .store = KEEPER_STORE_DISK,
				    .class = KEEPER_CLASS_ROOT };

	snprintf(b.id, sizeof(b.id), "%s", id);
	snprintf(b.group, sizeof(b.group), "p.1.%s", id);
	snprintf(b.template, sizeof(b.template), "host");
	return b;
}

static void count(struct sandbox_record *b, void *arg)
{
	(void)b;
	++*(size_t *)arg;
}

static void a_sandbox_is_found_until_removed(void)
{
	char id[KEEPER_ID_SIZE];
	size_t n = 0;

	for (int i = 0; i < 10000; i++) {
		struct sandbox_record b;

		snprintf(id, sizeof(id), "box%d", i);
		b = sample(id);
		CHECK(sandbox_table_add(&table, &b) != NULL);
	}
	CHECK(table.count == 10000);
	CHECK(sandbox_table_find(&table, "box9999") && !sandbox_table_find(&table, "box10000"));
	sandbox_table_remove(&table, "box5000");
	sandbox_table_remove(&table, "box5000");
	CHECK(!sandbox_table_find(&table, "box5000"));
	sandbox_table_each(&table, count, &n);
	CHECK(n == 9999 && table.count == n);
}

static void a_record_reads_back_as_written(void)
{
	struct sandbox_record b = sample("a"), got = { 0 };

	CHECK(sandbox_table_record_write(fd, &b) == 0);
	CHECK(sandbox_table_record_read(fd, &got) == 0);
	CHECK(got.pid == b.pid && got.start == b.start && got.base == b.base);
	CHECK(got.store == b.store && got.class == b.class);
	CHECK_STR(got.group, b.group);
	CHECK_STR(got.template, b.template);
	CHECK(got.files == SANDBOX_FILES_GO && !got.paused);
	b.files = SANDBOX_FILES_BACK;
	b.paused = true;
	snprintf(b.layer, sizeof(b.layer), "low-1");
	CHECK(sandbox_table_record_write(fd, &b) == 0 && sandbox_table_record_read(fd, &got) == 0);
	CHECK(got.files == SANDBOX_FILES_BACK && got.paused);
	CHECK_STR(got.layer, "low-1");
}

static void kept_files_have_a_name_of_their_own(void)
{
	struct sandbox_record b = sample("a");

	CHECK_STR(sandbox_table_entry(&b).name, "s-a");
	b.files = SANDBOX_FILES_STAY;
	CHECK_STR(sandbox_table_entry(&b).name, "k-a");
	b.files = SANDBOX_FILES_BACK;
	CHECK_STR(sandbox_table_entry(&b).name, "k-a");
}

static int put(const char *text)
{
	int f = openat(fd, "record", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = write(f, text, strlen(text));

	close(f);
	return n < 0 ? -1 : 0;
}

static void an_incomplete_record_is_ignored(void)
{
#define REST "\nfiles 1\npaused 0\ngroup a\ntemplate host\nlayer none\n"
	static const char *const bad[] = {
		"",
		"version 2\n",
		"version 1\npid 1\nstart 1\nbase 1\nstore 1\nclass 0" REST,
		"version 3\npid 1\nstart 1\nbase 1\nstore 1\nclass 0" REST,
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 7" REST,
		"version 2\npid 99999999999\nstart 1\nbase 1\nstore 1\nclass 0" REST,
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 4\npaused 0\ngroup a\n"
		"template host\nlayer none\n",
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 1\npaused 2\ngroup a\n"
		"template host\nlayer none\n",
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 1\npaused 0\n"
		"template host\nlayer none\n",
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 1\npaused 0\n"
		"group ../../etc\ntemplate host\nlayer none\n",
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 1\npaused 0\n"
		"group a\ntemplate host\nlayer ../x\n",
		"version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0\nfiles 1\npaused 0\n"
		"group a\ntemplate host\n",
	};
	static const char good[] = "version 2\npid 1\nstart 1\nbase 1\nstore 1\nclass 0" REST;

	CHECK(put(good) == 0 && sandbox_table_record_read(fd, &(struct sandbox_record){ 0 }) == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sandbox_record got = { .pid = -7 };

		CHECK(put(bad[i]) == 0);
		CHECK(sandbox_table_record_read(fd, &got) < 0);
		CHECK(got.pid == -7);
	}
	unlinkat(fd, "record", 0);
	CHECK(sandbox_table_record_read(fd, &(struct sandbox_record){ 0 }) == -ENOENT);
}

static void a_reused_pid_is_recognized(void)
{
	struct sandbox_record b = { .pid = getpid(), .start = sandbox_table_start_time(getpid()) };
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	CHECK(b.start != 0 && sandbox_table_is_alive(&b));
	b.start++;
	CHECK(!sandbox_table_is_alive(&b));
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(sandbox_table_start_time(child) == 0);
}

static void an_exit_is_noted_by_pid_and_start_time(void)
{
	struct sandbox_record *other, *same, b;
	siginfo_t info;
	uint64_t start;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(3);
	CHECK(pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	start = sandbox_table_zombie_start_time(pid);
	CHECK(start && sandbox_table_start_time(pid) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	b = sample("other"); /* of an earlier keeper: the pid was used again */
	b.pid = pid;
	b.start = start - 1;
	other = sandbox_table_add(&table, &b);
	b = sample("same");
	b.pid = pid;
	b.start = start;
	same = sandbox_table_add(&table, &b);
	CHECK(other && same);
	sandbox_table_note_exit(&table, pid, start, status);
	CHECK(!other->exited && same->exited && WEXITSTATUS(same->status) == 3);
	sandbox_table_remove(&table, "other");
	sandbox_table_remove(&table, "same");
}

int main(void)
{
	if (!mkdtemp(tmp_name(dir, "lodge-test")) || (fd = open(dir, O_DIRECTORY | O_CLOEXEC)) < 0)
		return 99;
	RUN(a_sandbox_is_found_until_removed);
	RUN(a_record_reads_back_as_written);
	RUN(kept_files_have_a_name_of_their_own);
	RUN(an_incomplete_record_is_ignored);
	RUN(a_reused_pid_is_recognized);
	RUN(an_exit_is_noted_by_pid_and_start_time);
	for (int i = 0; i < 10000; i++) {
		char id[KEEPER_ID_SIZE];

		snprintf(id, sizeof(id), "box%d", i);
		sandbox_table_remove(&table, id);
	}
	close(fd);
	rmdir(dir);
	return tap_done();
}
