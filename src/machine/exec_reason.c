/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/exec_reason.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "machine/exec.h"

void exec_reason_set(struct store_exec *rec, const char *format, ...)
{
	va_list args;

	if (*rec->reason)
		return;
	va_start(args, format);
	(void)vsnprintf(rec->reason, sizeof(rec->reason), format, args);
	va_end(args);
}

void exec_reason_set_failed_start(struct store_exec *rec, const struct err *why)
{
	exec_reason_set(rec, "not started: %s", why->msg);
	rec->start_failed = true;
}

void exec_reason_set_late_end(struct store_exec *rec)
{
	*rec->reason = '\0';
	exec_reason_set(rec, "the sandbox did not respond while the command was started; it ran to "
			     "its end before lodge could kill it");
}

struct store_exec exec_end_with_sandbox(int64_t at)
{
	struct store_exec end = {
		.state = EXEC_KILLED, .exit_code = -1, .signal = SIGKILL, .ended_at = at
	};

	exec_reason_set(&end, "killed with its sandbox, which ended");
	return end;
}
