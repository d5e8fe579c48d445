/* SPDX-License-Identifier: Apache-2.0 */
/* Large output: its throughput, and its cost when it is not read. */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"

enum { BUF = 256 * 1024, TIMES = 3, STOPPED_MS = 2000, READ_FIRST = 1 << 20 };
#define GIGABYTE (1ull << 30)

static char buf[BUF];

static void check_total(uint64_t total, const char *caller)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, "%llu bytes", (unsigned long long)total);
	must(total == GIGABYTE ? 0 : -1, &err, caller);
}

void output_pipe(const char *text, const char *what, int round)
{
	const char *argv[] = { "/bin/sh", "-c", text, NULL };
	posix_spawn_file_actions_t fa;
	uint64_t total = 0;
	double t0 = now_us();
	int p[2], status;
	ssize_t n;
	pid_t pid;
	struct err err;

	must(pipe2(p, O_CLOEXEC), NULL, "pipe");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	err_set(&err, ERR_INTERNAL, "posix_spawn");
	must(-posix_spawn(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, environ), &err,
	     "cat");
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	while ((n = read(p[0], buf, sizeof(buf))) > 0)
		total += (uint64_t)n;
	close(p[0]);
	waitpid(pid, &status, 0);
	put_sample(what, "cat", "us", round, now_us() - t0);
	check_total(total, "cat");
}

/* Everything that can be read now. */
static void take(struct guest_exec *x, uint64_t *at)
{
	struct err err;
	ssize_t n;

	while ((n = guest_exec_read(x, GUEST_EXEC_OUT, at, buf, sizeof(buf))) > 0)
		must(guest_exec_consumed(x, *at, 0, &err), &err, "exec_consumed");
	err_set(&err, ERR_INTERNAL, "the log cannot be read");
	must((int)n, &err, "exec_read");
}

static void through_sandbox(struct sandbox *sb, int round)
{
	struct guest_exec_spec spec = { .text = "exec head -c 1G /dev/zero", .hold = true };
	double t0 = now_us();
	uint64_t at = 0;
	struct guest_exec *x;
	struct err err;

	must(guest_exec_begin(sb, &spec, &x, &err), &err, "exec_begin");
	while (!*guest_exec_ended(x)) {
		must(agent_step(guest_exec_agent(x), -1, &err), &err, "exec");
		take(x, &at);
	}
	take(x, &at);
	put_sample("gigabyte", "lodge", "us", round, now_us() - t0);
	guest_exec_free(x);
	check_total(at, "lodge");
}

/* ---- a reader that stops -------------------------------------------------------------------- */

static double memory_kb(pid_t init)
{
	return (double)(proc_kb(getpid(), "status", "VmRSS:") + proc_kb(init, "status", "VmRSS:") +
			proc_memfd_bytes(getpid()) / 1024);
}

static void stop_reading(struct sandbox *sb, bool hold, const char *name)
{
	struct guest_exec_spec spec = { .text = "exec yes", .hold = hold };
	double before = memory_kb(sandbox_pid(sb)), until = now_us() + STOPPED_MS * 1e3;
	uint64_t at = 0, end;
	struct guest_exec *x;
	struct err err;

	must(guest_exec_begin(sb, &spec, &x, &err), &err, "exec_begin");
	while (at < READ_FIRST) {
		must(agent_step(guest_exec_agent(x), -1, &err), &err, "exec");
		take(x, &at);
	}
	while (now_us() < until) {
		pause_us(10000);
		if (agent_step(guest_exec_agent(x), 0, &err) < 0 && err.code != ERR_TIMEOUT)
			must(-1, &err, "exec");
	}
	put_value(name, memory_kb(sandbox_pid(sb)) - before);
	end = guest_exec_end(x, GUEST_EXEC_OUT);
	if (hold && end > 64u << 20)
		put_note("%s: went on to %llu bytes though its reader had stopped", name,
			 (unsigned long long)end);
	must(guest_exec_kill(x, &err), &err, "exec_kill");
	while (!*guest_exec_ended(x)) { /* its last output is still for the reader */
		take(x, &at);
		must(agent_step(guest_exec_agent(x), 10000, &err), &err, "end of `yes`");
	}
	guest_exec_free(x);
}

void output_run(const struct bench *b)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb;
	struct err err;

	must(sandbox_new(b->keeper, &spec, &sb, &err), &err, "sandbox_new");
	for (int i = 0; i < TIMES; i++) {
		output_pipe("head -c 1G /dev/zero | cat", "gigabyte", i);
		through_sandbox(sb, i);
	}
	stop_reading(sb, true, "yes/held/growth_kb");
	stop_reading(sb, false, "yes/dropped/growth_kb");
	must(sandbox_destroy(sb, &err), &err, "sandbox_destroy");
	sandbox_free(sb);
}
