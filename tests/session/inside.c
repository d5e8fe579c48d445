/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "exec/exec_lookup.h"
#include "exec/side_conn.h"
#include "../unit/exec_run.h"

enum { READ_MAX = 64 << 20 };

static struct exec_opts want_of(const json_t *q)
{
	return (struct exec_opts){ .text = str(q, "text"),
				   .timeout_ms = (uint32_t)num(q, "timeout_ms"),
				   .output_bytes = (uint64_t)num(q, "output_bytes"),
				   .background = flag(q, "background"),
				   .stdin_open = flag(q, "stdin"),
				   .idempotency_key = str(q, "once"),
				   .no_resume = flag(q, "no_resume") };
}

json_t *op_run(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct exec_opts w = want_of(q);
	struct guest_exec_output o;
	json_t *a;

	if (exec_run(engine, &caller, &ref, &w, NULL, 0, &o, err) < 0)
		return NULL;
	a = json_pack("{s:i, s:i, s:i, s:o, s:o, s:I}", "code", o.result.code, "signal",
		      o.result.signal, "hits", (int)o.result.hits, "out", bytes(o.out, o.out_len),
		      "err", bytes(o.err, o.err_len), "out_total", (json_int_t)o.out_total);
	guest_exec_output_fini(&o);
	return a;
}

static json_t *exec_json(struct exec_handle *x, struct err *err)
{
	static const char *const states[] = { "running", "exited", "killed", "lost" };
	struct store_exec r;
	json_t *a;

	if (exec_get_info(x, &r, err) < 0)
		return NULL;
	a = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:s}", "exec", r.id, "state",
		      states[r.state & 3], "code", (json_int_t)r.exit_code, "signal",
		      (json_int_t)r.signal, "out_total", (json_int_t)r.stdout_bytes, "err_total",
		      (json_int_t)r.stderr_bytes, "timed_out", r.timed_out, "session", r.session);
	store_exec_fini(&r);
	return a;
}

json_t *op_start(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct exec_opts w = want_of(q);
	auto_call(exec_close) struct exec_handle *x = NULL;

	if (exec_start(engine, &caller, &ref, &w, &x, NULL, err) < 0)
		return NULL;
	return exec_json(x, err);
}

json_t *op_wait(const json_t *q, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	int64_t ms = json_object_get(q, "ms") ? num(q, "ms") : -1;

	if (exec_open(engine, &caller, str(q, "exec"), &x, err) < 0)
		return NULL;
	if (exec_wait(x, ms, err) < 0)
		return NULL;
	return exec_json(x, err);
}

json_t *op_output(const json_t *q, struct err *err)
{
	enum guest_exec_stream s = flag(q, "stderr") ? GUEST_EXEC_ERR : GUEST_EXEC_OUT;
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_free char *buf = malloc(1 << 20);
	size_t got = 0;
	bool ended;

	if (exec_open(engine, &caller, str(q, "exec"), &x, err) < 0)
		return NULL;
	ended = exec_has_ended(x);
	if (exec_read(x, s, (uint64_t)num(q, "offset"), buf, 1 << 20, num(q, "wait_ms"), &got,
		      err) < 0)
		return NULL;
	return json_pack("{s:o, s:I, s:b}", "data", bytes(buf, got), "next",
			 (json_int_t)(num(q, "offset") + (int64_t)got), "ended", ended);
}

json_t *op_stdin(const json_t *q, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	const char *data = str(q, "data") ? str(q, "data") : "";

	if (exec_open(engine, &caller, str(q, "exec"), &x, err) < 0 ||
	    exec_write_stdin(x, data, strlen(data), flag(q, "eof"), err) < 0)
		return NULL;
	return json_object();
}

json_t *op_signal(const json_t *q, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;

	if (exec_open(engine, &caller, str(q, "exec"), &x, err) < 0 ||
	    exec_signal(x, (int)num(q, "signal"), AGENT_TO_TREE, err) < 0)
		return NULL;
	return json_object();
}

json_t *op_execs(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_page page = { .limit = STORE_PAGE_MAX };
	struct store_exec_list l;
	json_t *a = json_array();

	if (exec_list(engine, &caller, &ref, page, &l, err) < 0) {
		json_decref(a);
		return NULL;
	}
	for (size_t i = 0; i < l.count; i++)
		json_array_append_new(a, json_pack("{s:s, s:i}", "exec", l.items[i].id, "state",
						   (int)l.items[i].state));
	store_exec_list_fini(&l);
	return json_pack("{s:o}", "execs", a);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_side_conn(const json_t *q, struct side_conn **ret, struct err *err)
{
	struct session_ref ref = ref_of(q);

	return side_conn_open(engine, &caller, &ref, !flag(q, "no_resume"), ret, NULL, err);
}

json_t *op_write(const json_t *q, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *l = NULL;
	const char *data = str(q, "data") ? str(q, "data") : "";

	if (open_side_conn(q, &l, err) < 0 ||
	    files_write(side_conn_sandbox(l), NULL, str(q, "path"), data, strlen(data),
			AGENT_PARENTS, 0644, err) < 0)
		return NULL;
	return json_object();
}

json_t *op_read(const json_t *q, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *l = NULL;
	auto_free void *data = NULL;
	size_t len;

	if (open_side_conn(q, &l, err) < 0 ||
	    files_read(side_conn_sandbox(l), NULL, str(q, "path"), READ_MAX, &data, &len, err) < 0)
		return NULL;
	return json_pack("{s:o}", "data", bytes(data, len));
}

json_t *op_remove(const json_t *q, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *l = NULL;

	if (open_side_conn(q, &l, err) < 0 ||
	    files_remove_tree(side_conn_sandbox(l), NULL, str(q, "path"), err) < 0)
		return NULL;
	return json_object();
}

json_t *op_stat(const json_t *q, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *l = NULL;
	struct files_stat st;
	json_t *a;

	if (open_side_conn(q, &l, err) < 0 ||
	    files_stat(side_conn_sandbox(l), NULL, str(q, "path"), false, &st, err) < 0)
		return NULL;
	a = json_pack("{s:i, s:I}", "mode", (int)st.st.mode, "size", (json_int_t)st.st.size);
	free(st.target);
	return a;
}

/* Packs a directory of the sandbox into a tar file on the host, or unpacks one. */
json_t *op_tar(const json_t *q, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *l = NULL;
	bool in = flag(q, "in");
	auto_close int fd = open(str(q, "file"),
				 (in ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC) | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "%s", str(q, "file")), NULL;
	if (open_side_conn(q, &l, err) < 0)
		return NULL;
	r = in ? files_tar_in(side_conn_sandbox(l), NULL, str(q, "path"), fd, 0, err)
	       : files_tar_out(side_conn_sandbox(l), NULL, str(q, "path"), fd, err);
	return r < 0 ? NULL : json_object();
}
