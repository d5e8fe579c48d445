/* SPDX-License-Identifier: Apache-2.0 */
/* The second part of `lodge run`, after cmd_run.c created the sandbox: forwards bytes and signals,
 * and reports the result. */
#ifndef LODGE_CLI_LOCAL_LOCAL_RUN_H
#define LODGE_CLI_LOCAL_LOCAL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/guest_exec.h"
#include "sandbox/sandbox.h"
#include "wire/enforcement.h"
#include "wire/limits.h"

struct keeper_client;

struct local_run {
	struct keeper_client *keeper;
	struct sandbox *sb;
	struct guest_exec *x;
	struct limits limits;
	enum keeper_store store;
	struct enforcement enforcement;
	uint32_t timeout_ms;
	bool feed; /* send stdin */
	bool collect; /* --json: collect output instead of writing it */
	bool tty;
	/* how it ended, in addition to the result of the exec */
	bool pipe_broken;
	bool oom; /* the memory limit ended the whole sandbox */
	bool disk_full;
	bool late; /* lodge enforced the timeout, because lodge-init did not */
	struct err err; /* set when lodge itself failed */
};

/* Runs the command to its end. -1: r->err says what failed. */
int local_run_loop(struct local_run *r);

/* Returns the exit status. Prints a line on stderr for each limit that was reached, or what was
 * collected as one JSON object on stdout. */
int local_run_report(const struct local_run *r);
/* The exit status for a command that could not be started. */
int local_run_start_status(const struct err *err, const char *command);

#endif
