/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a thread's session, and entering it. */
#include "thread/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/guest_exec.h"
#include "engine/keeper_conn.h"
#include "engine/session_state.h"
#include "sandbox/template/template.h"
#include "session/session_api.h"

enum { MINUTE_MS = 60000, SIGNALLED = 128 };

static const char default_user[] = "user", default_workdir[] = "/workspace";

/* ---- settings -------------------------------------------------------------------------------- */

static void set_default(uint64_t *to, uint64_t value)
{
	if (!*to)
		*to = value;
}

static void lower(uint64_t *value, uint64_t max)
{
	if (max && *value > max)
		*value = max;
}

static int check_workdir(const char *dir, struct err *err)
{
	char path[KEEPER_PATH_SIZE] = { 0 };

	if (strlen(dir) < sizeof(path))
		memcpy(path, dir, strlen(dir) + 1);
	return keeper_path_is_valid(path)
		       ? 0
		       : err_set(err, ERR_INVALID, "threads_workdir: must be an absolute path");
}

static int check_limits(const struct thread_config *t, struct err *err)
{
	struct limits l = limits_default();

	l.memory_bytes = t->memory_bytes;
	l.cpu_milli = t->cpu_milli < LIMITS_CPU_MILLI_MAX ? (uint32_t)t->cpu_milli : UINT32_MAX;
	l.pids = t->pids < LIMITS_PIDS_MAX ? (uint32_t)t->pids : UINT32_MAX;
	l.file_bytes = t->file_bytes;
	l.disk_bytes = t->disk_bytes;
	if (limits_check(&l, "threads: ", err) < 0)
		return -1;
	if (t->file_bytes > t->disk_bytes)
		return err_set(err, ERR_INVALID, "threads_file_size: must not exceed threads_disk");
	return 0;
}

/* As in /v1, a limit that is set explicitly must be enforceable, else no sandbox is created. */
static unsigned limits_to_enforce(const struct thread_config *t)
{
	return (t->memory_bytes || t->cpu_milli || t->pids ? KEEPER_DEMAND_CGROUP : 0) |
	       (t->disk_bytes ? KEEPER_DEMAND_DISK : 0);
}

int thread_config_check(struct thread_config *t, struct err *err)
{
	uint32_t uid = 1, gid = 1;

	t->demand = limits_to_enforce(t);
	set_default(&t->memory_bytes, 256 << 20);
	set_default(&t->cpu_milli, 250);
	set_default(&t->pids, 128);
	set_default(&t->file_bytes, 100 << 20);
	set_default(&t->disk_bytes, 500 << 20);
	set_default(&t->files, 1000);
	if (!t->idle_ms)
		t->idle_ms = 30 * (int64_t)MINUTE_MS;
	if (!t->user)
		t->user = default_user;
	if (!t->workdir)
		t->workdir = default_workdir;
	if (strcmp(t->user, default_user) != 0 &&
	    (template_parse_user(t->user, &uid, &gid, err) != 1 || !uid || !gid))
		return err_set(err, ERR_INVALID,
			       "threads_user: must be \"%s\" or a user ID other than 0",
			       default_user);
	if (check_workdir(t->workdir, err) < 0 || check_limits(t, err) < 0)
		return -1;
	lower(&t->memory_bytes, t->max.memory_bytes);
	lower(&t->cpu_milli, t->max.cpu_milli);
	lower(&t->pids, t->max.pids);
	lower(&t->disk_bytes, t->max.disk_bytes);
	lower(&t->file_bytes, t->disk_bytes);
	return 0;
}

static int set_copy(char **to, const char *text, struct err *err)
{
	*to = strdup(text);
	return *to ? 0 : err_sys(err, ENOMEM, "session");
}

/* The number of files is checked on upload, because the storage enforces bytes only. */
static int make_spec(const struct thread_config *t, struct template *ret, struct err *err)
{
	ret->demand = t->demand;
	if (template_set_limit(ret, "memory_bytes", t->memory_bytes, err) < 0 ||
	    template_set_limit(ret, "cpu_milli", t->cpu_milli, err) < 0 ||
	    template_set_limit(ret, "pids", t->pids, err) < 0 ||
	    template_set_limit(ret, "file_bytes", t->file_bytes, err) < 0 ||
	    template_set_limit(ret, "disk_bytes", t->disk_bytes, err) < 0 ||
	    set_copy(&ret->user, t->user, err) < 0)
		return -1;
	return set_copy(&ret->workdir, t->workdir, err);
}

/* ---- entering -------------------------------------------------------------------------------- */

static int check_name(const char *field, const char *text, size_t size, struct err *err)
{
	if (!text || !*text || strlen(text) >= size)
		return err_set(err, ERR_INVALID, "%s: 1 to %zu bytes", field, size - 1);
	return 0;
}

/* Entering the user's own session counts as a use of it. */
static int enter_existing(struct engine *e, const struct caller *caller,
			  const struct session_opts *opts, int64_t minutes,
			  struct session_enter_result *ret, struct err *err)
{
	struct session_ref by = { .kind = opts->keys->kind, .key = opts->keys->key };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_session used = { 0 };
	struct enforcement f;
	struct err ignored;

	keeper_conn_enforcement(e, &f);
	if (session_get(e, caller, &by, &s, &ignored) < 0)
		return enforcement_check(&f, KEEPER_STORE_DISK, opts->overrides->demand, err) < 0
			       ? -1
			       : err_set(err, ERR_CONFLICT,
					 "the session of this thread has just ended; try again");
	if (strcmp(s.user, opts->user) != 0)
		return err_set(err, ERR_DENIED, "this thread belongs to another user");
	by = (struct session_ref){ .id = s.id };
	*ret = (struct session_enter_result){ .outcome = SESSION_REUSED };
	if (minutes && minutes * MINUTE_MS != s.idle_timeout_ms)
		session_fields_add(&ret->ignored, SESSION_FIELD_IDLE);
	if (session_activity(e, caller, &by, &used, &ignored) == 0)
		ret->session = used;
	else
		ret->session = steal_struct(&s);
	return 0;
}

int thread_enter(struct engine *e, const struct caller *caller, const struct thread_config *t,
		 const char *user, const char *thread, int64_t minutes,
		 struct session_enter_result *ret, struct err *err)
{
	struct store_binding key = { .kind = "thread" };
	auto_fini(template_fini) struct template over;
	struct session_opts opts = { .keys = &key,
				     .nkeys = 1,
				     .user = user,
				     .overrides = &over,
				     .template = t->template,
				     .policy = t->policy,
				     .must_be_new = true,
				     .idle_timeout_ms = minutes ? minutes * MINUTE_MS : t->idle_ms,
				     .adjust = true,
				     .on_idle = SESSION_END_DESTROY };

	template_init(&over);
	if (check_name("user_id", user, STORE_USER, err) < 0 ||
	    check_name("thread_id", thread, STORE_KEY, err) < 0)
		return -1;
	if (minutes < 0 || minutes > THREAD_MINUTES_MAX)
		return err_set(err, ERR_INVALID, "timeout_minutes: must be between 1 and %d",
			       THREAD_MINUTES_MAX);
	memcpy(key.key, thread, strlen(thread) + 1);
	if (make_spec(t, &over, err) < 0)
		return -1;
	if (session_enter(e, caller, &opts, ret, err) == 0) {
		if (!minutes) /* the setting was reduced, not a request */
			ret->adjusted = (struct session_fields){ 0 };
		return 0;
	}
	if (err->code == ERR_CONFLICT)
		return enter_existing(e, caller, &opts, minutes, ret, err);
	if (err->code == ERR_NOT_FOUND) /* the configured template or policy is missing */
		err->code = ERR_UNAVAILABLE;
	return -1;
}

/* ---- commands -------------------------------------------------------------------------------- */

int thread_timeout(double seconds, uint32_t *ret_ms, struct err *err)
{
	if (!(seconds >= 0 && seconds <= THREAD_TIMEOUT_MAX_S))
		return err_set(err, ERR_INVALID,
			       "timeout: must be between 0 (no limit) and %d seconds",
			       THREAD_TIMEOUT_MAX_S);
	*ret_ms = (uint32_t)(seconds * 1000 + 0.5);
	if (seconds > 0 && !*ret_ms)
		*ret_ms = 1;
	return 0;
}

int thread_exit_code(struct exec_handle *x, const struct guest_exec_result *r, int *ret,
		     struct err *err)
{
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };

	if (exec_get_info(x, &rec, err) < 0)
		return -1;
	*ret = rec.state == EXEC_LOST ? -1 : r->signal ? SIGNALLED + r->signal : r->code;
	return 0;
}
