/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, forks, projects; and the table of all operations. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "driver.h"
#include "project/fragment.h"
#include "project/project.h"
#include "project/users.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "snapshot/snapshot_archive.h"
#include "project/project_switch.h"
#include "project/user_kill.h"
#include "admit/quota.h"
#include "session/capacity.h"
#include "session/session_api.h"

json_t *op_snapshot(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct snapshot_opts w = { .name = str(q, "name"), .stop = flag(q, "stop") };
	struct store_snapshot s;

	if (session_snapshot(engine, &caller, &ref, &w, &s, err) < 0)
		return NULL;
	return json_pack("{s:o}", "snapshot", snapshot_json(&s));
}

json_t *op_snapshots(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_page page = { .limit = STORE_PAGE_MAX };
	struct store_snapshot_list l;
	json_t *a = json_array();
	bool one = ref.id || ref.key;

	if (snapshot_list(engine, &caller, one ? &ref : NULL, page, &l, err) < 0) {
		json_decref(a);
		return NULL;
	}
	for (size_t i = 0; i < l.count; i++)
		json_array_append_new(a, snapshot_json(&l.items[i]));
	store_snapshot_list_fini(&l);
	return json_pack("{s:o}", "snapshots", a);
}

json_t *op_snapshot_remove(const json_t *q, struct err *err)
{
	return snapshot_remove(engine, &caller, str(q, "snapshot"), err) < 0 ? NULL : json_object();
}

json_t *op_fork(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_binding key = { .kind = "key" };
	struct store_session s;

	if (str(q, "to"))
		snprintf(key.key, sizeof(key.key), "%s", str(q, "to"));
	return record(session_fork(engine, &caller, &ref, str(q, "snapshot"), 1,
				   str(q, "to") ? &key : NULL, &s, err),
		      &s);
}

json_t *op_rollback(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	struct store_session s;

	return record(session_rollback(engine, &caller, &ref, str(q, "snapshot"),
				       num(q, "if_version"), &s, err),
		      &s);
}

json_t *op_export(const json_t *q, struct err *err)
{
	auto_close int fd = open(str(q, "file"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "%s", str(q, "file")), NULL;
	return snapshot_export(engine, &caller, str(q, "snapshot"), fd, err) < 0 ? NULL
										 : json_object();
}

json_t *op_import(const json_t *q, struct err *err)
{
	auto_close int fd = open(str(q, "file"), O_RDONLY | O_CLOEXEC);
	struct store_snapshot s;

	if (fd < 0)
		return err_sys(err, errno, "%s", str(q, "file")), NULL;
	if (snapshot_import(engine, &caller, str(q, "template") ? str(q, "template") : "host",
			    str(q, "name"), fd, &s, err) < 0)
		return NULL;
	return json_pack("{s:o}", "snapshot", snapshot_json(&s));
}

json_t *op_durable(const json_t *q, struct err *err)
{
	struct session_ref ref = ref_of(q);
	bool durable;

	if (session_is_durable(engine, &caller, &ref, &durable, err) < 0)
		return NULL;
	return json_pack("{s:b}", "durable", durable);
}

/* ---- projects -------------------------------------------------------------------------------- */

json_t *op_project(const json_t *q, struct err *err)
{
	struct project_opts w = { .id = str(q, "project"), .name = str(q, "project") };
	struct store_project p;

	if (project_add(engine, &caller, str(q, "user"), &w, &p, err) < 0)
		return NULL;
	return json_pack("{s:s}", "project", p.id);
}

json_t *op_fragment(const json_t *q, struct err *err)
{
	struct fragment_opts w = { .from_sandbox = flag(q, "from_sandbox") };
	struct fragment_add_result f;
	auto_free char *text = NULL;

	if (json_object_get(q, "files")) {
		text = json_dumps(json_object_get(q, "files"), 0);
		w.files = text;
		w.files_len = strlen(text);
	}
	if (fragment_add(engine, &caller, str(q, "user"), str(q, "project"), &w, &f, err) < 0)
		return NULL;
	return json_pack("{s:s, s:i}", "fragment", f.fragment.id, "files", (int)f.fragment.files);
}

json_t *op_switch(const json_t *q, struct err *err)
{
	struct switch_opts w = { .user = str(q, "user"),
				 .project = str(q, "project"),
				 .fragment = str(q, "fragment") };
	struct switch_result s;

	if (switch_user(engine, &caller, &w, &s, err) < 0)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:b}", "session", s.session, "sandbox",
			 s.sandbox, "project", s.project, "fragment", s.fragment, "restored",
			 (int)s.restored_files, "has_restored", s.has_restored_files, "state_lost",
			 s.state_lost);
}

json_t *op_project_remove(const json_t *q, struct err *err)
{
	return project_remove(engine, &caller, str(q, "user"), str(q, "project"), err) < 0
		       ? NULL
		       : json_object();
}

json_t *op_fragment_remove(const json_t *q, struct err *err)
{
	return fragment_remove(engine, &caller, str(q, "user"), str(q, "project"),
			       str(q, "fragment"), err) < 0
		       ? NULL
		       : json_object();
}

/* The user's project and fragment; both "" if there is none. */
json_t *op_where(const json_t *q, struct err *err)
{
	struct user_info i = { 0 };
	struct store_project p;
	json_t *a;

	if (user_get(engine, &caller, str(q, "user"), &i, err) < 0 && err->code != ERR_NOT_FOUND)
		return NULL;
	if (project_get(engine, &caller, str(q, "user"), i.user.project, &p, err) < 0)
		i.user.project[0] = i.user.fragment[0] = '\0'; /* it was removed */
	a = json_pack("{s:s, s:s}", "project", i.user.project, "fragment", i.user.fragment);
	user_info_fini(&i);
	return a;
}

/* Every running sandbox of the user. */
json_t *op_kill_user(const json_t *q, struct err *err)
{
	struct kill_result_list l;
	json_t *a;

	if (user_kill_sandboxes(engine, &caller, str(q, "user"), &l, err) < 0)
		return NULL;
	a = json_pack("{s:i, s:i}", "killed", (int)l.killed, "failed", (int)l.failed);
	kill_result_list_fini(&l);
	return a;
}

json_t *op_cleanup(const json_t *q, struct err *err)
{
	struct session_cleanup c;
	json_t *a;

	if (session_cleanup(engine, &caller, str(q, "user"), &c, err) < 0)
		return NULL;
	a = json_pack("{s:i, s:i}", "destroyed", (int)c.ndestroyed, "failed", (int)c.nfailed);
	session_cleanup_fini(&c);
	return a;
}

json_t *op_quota(const json_t *q, struct err *err)
{
	struct store_quota quota = { .sandboxes = num(q, "sandboxes"),
				     .memory_bytes = num(q, "memory_bytes"),
				     .disk_bytes = num(q, "disk_bytes"),
				     .cpu_ms = num(q, "cpu_ms") };

	snprintf(quota.tenant, sizeof(quota.tenant), "%s", caller.tenant);
	snprintf(quota.user, sizeof(quota.user), "%s", str(q, "user") ? str(q, "user") : "");
	return quota_set(engine, &quota, err) < 0 ? NULL : json_object();
}

json_t *op_full(const json_t *q, struct err *err)
{
	struct capacity_report f;

	(void)q, (void)err;
	capacity_get_report(engine, &f);
	return json_pack("{s:i, s:i, s:i, s:i, s:I}", "active", (int)f.active, "max", (int)f.max,
			 "waiting", (int)f.waiting, "idle", (int)f.idle, "retry_after_ms",
			 (json_int_t)f.retry_after_ms);
}

op_fn *op_find(const char *name)
{
	static const struct {
		const char *name;
		op_fn *fn;
	} all[] = {
		{ "enter", op_enter },
		{ "resume", op_resume },
		{ "get", op_get },
		{ "pause", op_change },
		{ "unpause", op_change },
		{ "hibernate", op_change },
		{ "archive", op_change },
		{ "unarchive", op_change },
		{ "extend", op_extend },
		{ "activity", op_activity },
		{ "destroy", op_destroy },
		{ "list", op_list },
		{ "probe", op_probe },
		{ "valid", op_valid },
		{ "sweep", op_sweep },
		{ "collect", op_collect },
		{ "facts", op_facts },
		{ "clock", op_clock },
		{ "nofile", op_nofile },
		{ "kept", op_kept },
		{ "events", op_events },
		{ "run", op_run },
		{ "start", op_start },
		{ "wait", op_wait },
		{ "output", op_output },
		{ "stdin", op_stdin },
		{ "signal", op_signal },
		{ "execs", op_execs },
		{ "write", op_write },
		{ "read", op_read },
		{ "remove", op_remove },
		{ "stat", op_stat },
		{ "tar", op_tar },
		{ "snapshot", op_snapshot },
		{ "snapshots", op_snapshots },
		{ "fork", op_fork },
		{ "snapshot_remove", op_snapshot_remove },
		{ "rollback", op_rollback },
		{ "export", op_export },
		{ "import", op_import },
		{ "durable", op_durable },
		{ "project", op_project },
		{ "fragment", op_fragment },
		{ "switch", op_switch },
		{ "cleanup", op_cleanup },
		{ "where", op_where },
		{ "project_remove", op_project_remove },
		{ "kill_user", op_kill_user },
		{ "fragment_remove", op_fragment_remove },
		{ "quota", op_quota },
		{ "full", op_full },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].fn;
	return NULL;
}
