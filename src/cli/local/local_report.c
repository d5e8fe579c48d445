/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "cli/core/human.h"
#include "cli/core/options.h"
#include "cli/core/limit_note.h"
#include "cli/local/local_run.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"

enum { HITS = 6, SIGNAL_BASE = 128 };

int local_run_start_status(const struct err *err, const char *command)
{
	size_t n = strlen(command);

	/* errors about the command begin with its name; a missing directory or user is another
	 * failure */
	if (strncmp(err->msg, command, n) != 0 || err->msg[n] != ':')
		return CLI_EXIT_FAILED;
	if (err->code == ERR_NOT_FOUND)
		return CLI_EXIT_NOT_FOUND;
	if (err->code == ERR_DENIED || err->code == ERR_INVALID)
		return CLI_EXIT_NOT_EXECUTABLE;
	return CLI_EXIT_FAILED;
}

static unsigned hits_of(const struct local_run *r)
{
	unsigned hits = guest_exec_result(r->x)->hits;

	if (r->oom)
		hits |= AGENT_HIT_MEMORY;
	if (r->disk_full)
		hits |= AGENT_HIT_DISK;
	if (r->late)
		hits |= AGENT_HIT_TIME;
	if (r->collect && (guest_exec_start_offset(r->x, GUEST_EXEC_OUT) ||
			   guest_exec_start_offset(r->x, GUEST_EXEC_ERR)))
		hits |= AGENT_HIT_OUTPUT;
	return hits;
}

static int status_of(const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);

	if (r->late || res->hits & AGENT_HIT_TIME)
		return CLI_EXIT_TIMEOUT;
	if (r->oom)
		return SIGNAL_BASE + SIGKILL;
	if (r->err.code)
		return CLI_EXIT_FAILED;
	if (r->pipe_broken)
		return SIGNAL_BASE + SIGPIPE;
	return res->signal ? SIGNAL_BASE + res->signal : res->code;
}

int local_run_report(const struct local_run *r)
{
	unsigned hits = hits_of(r);

	fflush(stdout);
	for (unsigned i = 0; i < HITS; i++)
		if (hits & 1u << i)
			limit_note_print(guest_exec_hit_name(1u << i), &r->limits, r->timeout_ms);
	if (r->err.code && !r->oom && !r->late)
		return cli_option_fail(status_of(r), &r->err);
	return status_of(r);
}

/* ---- json ------------------------------------------------------------------------------------ */

static void put_end(struct json_out *j, const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);
	bool killed = res->signal || r->late || r->oom;

	if (killed)
		json_out_null(j, "exit_code");
	else
		json_out_i64(j, "exit_code", res->code);
	if (killed)
		json_out_i64(j, "signal", res->signal ? res->signal : SIGKILL);
	else
		json_out_null(j, "signal");
}

static void put_streams(struct json_out *j, const struct guest_exec_output *o)
{
	bool text = json_is_utf8(o->out, o->out_len) && json_is_utf8(o->err, o->err_len);

	json_out_str(j, "encoding", text ? "utf-8" : "base64");
	if (text) {
		json_out_bytes(j, "stdout", o->out, o->out_len);
		json_out_bytes(j, "stderr", o->err, o->err_len);
	} else {
		json_out_base64(j, "stdout", o->out, o->out_len);
		json_out_base64(j, "stderr", o->err, o->err_len);
	}
	json_out_u64(j, "stdout_bytes", o->out_total);
	json_out_u64(j, "stderr_bytes", o->err_total);
	json_out_bool(j, "truncated", o->out_total != o->out_len || o->err_total != o->err_len);
}

static void put_usage(struct json_out *j, const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);

	json_out_u64(j, "duration_ms", res->duration_us / 1000);
	json_out_object(j, "usage");
	json_out_u64(j, "cpu_ms", res->cpu_us / 1000);
	json_out_u64(j, "max_rss_bytes", res->max_rss_bytes);
	json_out_end(j);
	json_out_str(j, "source", sandbox_source(r->sb) == KEEPER_SOURCE_POOL ? "pool" : "cold");
	json_out_u64(j, "ready_ms", (sandbox_ready_us(r->sb) + 999) / 1000);
}

static void put_hits(struct json_out *j, unsigned hits)
{
	json_out_bool(j, "timed_out", hits & AGENT_HIT_TIME);
	json_out_bool(j, "oom_killed", hits & AGENT_HIT_MEMORY);
	json_out_array(j, "limits");
	for (unsigned i = 0; i < HITS; i++)
		if (hits & 1u << i)
			json_out_str(j, NULL, guest_exec_hit_name(1u << i));
	json_out_end(j);
}

int local_run_report_json(const struct local_run *r)
{
	struct guest_exec_output o = { 0 };
	struct json_out j;
	auto_free char *text = NULL;
	struct err err;

	if (r->err.code && !r->oom && !r->late)
		return cli_option_fail(status_of(r), &r->err);
	if (guest_exec_collect(r->x, &o, &err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &err);
	json_out_init(&j, 6 * (o.out_len + o.err_len) + 4096);
	json_out_object(&j, NULL);
	put_end(&j, r);
	put_streams(&j, &o);
	put_hits(&j, hits_of(r));
	put_usage(&j, r);
	json_out_end(&j);
	guest_exec_output_fini(&o);
	text = json_out_take(&j, NULL);
	if (!text) {
		err_sys(&err, ENOMEM, "result");
		return cli_option_fail(CLI_EXIT_FAILED, &err);
	}
	human_put_json(text, stdout);
	return status_of(r);
}
