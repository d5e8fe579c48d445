/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `lodge run`: cmd_run.c reads the command line and makes the sandbox,
 * local_run_loop.c carries bytes and signals, local_run_report.c says how it ended. */
#ifndef LODGE_CLI_LOCAL_LOCAL_RUN_H
#define LODGE_CLI_LOCAL_LOCAL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/guest_exec.h"
#include "sandbox/sandbox.h"
#include "wire/limits.h"

struct keeper_client;

struct local_run {
	struct keeper_client *keeper;
	struct sandbox *sb;
	struct guest_exec *x;
	struct limits limits;
	enum keeper_store store;
	uint32_t timeout_ms;
	bool feed; /* stdin goes inside */
	bool collect; /* --json: output is kept, not written */
	bool tty;
	/* how it ended, besides what the exec says */
	bool pipe_broken;
	bool oom; /* the sandbox itself fell victim to its memory limit */
	bool disk_full;
	bool late; /* lodge-init did not enforce the deadline; we did */
	struct err err; /* set when lodge itself failed */
};

/* From the command's start to its end. -1: r->err says why there is no proper end. */
int local_run_loop(struct local_run *r);

/* The exit status; one line on stderr for each limit that was hit. */
int local_run_report(const struct local_run *r);
/* The same as one JSON object on stdout. */
int local_run_report_json(const struct local_run *r);
/* Status for a command that could not be started. */
int local_run_start_status(const struct err *err, const char *command);

#endif
