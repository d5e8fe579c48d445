/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/to_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/core/internal.h"
#include "base/array.h"
#include "machine/exec.h"
#include "engine/keeper_conn.h"
#include "engine/session_state.h"
#include "engine/start_progress.h"
#include "sandbox/template/template_json.h"
#include "session/session_api.h"

/* ---- output ---------------------------------------------------------------------------------- */

void api_put_raw(struct json_out *j, const char *key, const char *json, const char *otherwise)
{
	const char *text = json ? json : otherwise;

	json_out_raw(j, key, text, strlen(text));
}

void api_put_iso(struct json_out *j, const char *key, int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	char text[40], day[32];
	struct tm tm;

	if (ms <= 0 || !gmtime_r(&s, &tm) ||
	    !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm)) {
		json_out_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%s.%03dZ", day, (int)(ms % 1000));
	json_out_str(j, key, text);
}

void api_put_path(struct json_out *j, const char *path)
{
	json_out_str(j, "path", path);
	if (!json_is_utf8(path, strlen(path)))
		json_out_base64(j, "path_base64", path, strlen(path));
}

void api_put_mode(struct json_out *j, const char *key, unsigned mode)
{
	char text[8];

	snprintf(text, sizeof(text), "%04o", mode & 07777);
	json_out_str(j, key, text);
}

void api_put_stage(struct json_out *j, const struct progress_state *p)
{
	json_out_str(j, "stage", p->stage);
	json_out_str(j, "message", p->message);
	json_out_u64(j, "step", p->step);
	json_out_u64(j, "total_steps", p->total_steps);
}

void api_put_cause(struct json_out *j, const char *key, const struct store_cause *cause)
{
	if (!*cause->code || strcmp(cause->code, session_cause_name(SESSION_CAUSE_NONE)) == 0) {
		json_out_null(j, key);
		return;
	}
	json_out_object(j, key);
	json_out_str(j, "code", cause->code);
	json_out_str(j, "text", cause->text);
	json_out_str(j, "actor", cause->actor);
	json_out_i64_if(j, "at", cause->at, cause->at);
	json_out_end(j);
}

const char *api_binding(const struct store_session *s, const char *kind)
{
	for (size_t i = 0; i < s->nbindings; i++)
		if (strcmp(s->bindings[i].kind, kind) == 0)
			return s->bindings[i].key;
	return "";
}

static void put_limit(struct json_out *j, const char *name, uint64_t v)
{
	char text[32];

	if (strcmp(name, "cpu_milli") != 0) {
		json_out_u64(j, name, v);
		return;
	}
	snprintf(text, sizeof(text), "%llu.%03llu", (unsigned long long)v / 1000,
		 (unsigned long long)v % 1000);
	json_out_raw(j, "cpus", text, strlen(text));
}

void api_put_limit_values(struct json_out *j, const char *key, const struct template *t)
{
	json_out_object(j, key);
	for (unsigned i = 0; template_limit_name(i); i++)
		if (t->limits_set & 1u << i)
			put_limit(j, template_limit_name(i), template_limit_value(t, i));
	json_out_end(j);
}

void api_put_limits(struct api_call *c, struct json_out *j, const struct template *t)
{
	struct enforcement f;

	api_put_limit_values(j, "limits", t);
	keeper_conn_enforcement(c->engine, &f);
	template_put_not_enforced(j, LIMITS_NOT_ENFORCED, &f, KEEPER_STORE_DISK, t);
}

static void put_session_limits(struct api_call *c, struct json_out *j,
			       const struct store_session *s)
{
	struct template t = { .limits_set = UINT32_MAX };

	session_limits(c->engine, s, &t.limits);
	api_put_limits(c, j, &t);
}

static void put_field(void *arg, const char *name)
{
	json_out_str(arg, NULL, name);
}

void api_put_fields(struct json_out *j, const char *key, const struct session_fields *f)
{
	json_out_array(j, key);
	session_fields_each(f, put_field, j);
	json_out_end(j);
}

static void put_times(struct json_out *j, const struct store_session *s)
{
	static const char *const ends[] = { "hibernate", "destroy" };

	json_out_i64(j, "created_at", s->created_at);
	json_out_i64_if(j, "started_at", s->started_at, s->started_at);
	json_out_i64_if(j, "last_activity_at", s->last_activity_at, s->last_activity_at);
	json_out_i64(j, "idle_timeout_ms", s->idle_timeout_ms);
	json_out_i64(j, "lifetime_ms", s->lifetime_ms);
	json_out_i64(j, "max_lifetime_ms", s->max_lifetime_ms);
	json_out_i64_if(j, "delete_after_ms", s->delete_after_ms, s->delete_after_ms);
	json_out_i64_if(j, "hibernate_at", s->hibernate_at, s->hibernate_at);
	json_out_i64_if(j, "expires_at", s->expires_at, s->expires_at);
	json_out_i64_if(j, "hibernated_at", s->hibernated_at, s->hibernated_at);
	json_out_i64_if(j, "delete_at", session_delete_at(s), session_delete_at(s));
	json_out_str(j, "on_idle", ends[s->on_idle == SESSION_END_DESTROY]);
	json_out_str(j, "on_expire", ends[s->on_expire == SESSION_END_DESTROY]);
}

void api_put_session(struct api_call *c, struct json_out *j, const char *key,
		     const struct store_session *s)
{
	static const char *const runtimes[] = { "none", "resumable", "live" };

	json_out_object(j, key);
	json_out_str(j, "id", s->id);
	json_out_str(j, "tenant", s->tenant);
	json_out_text(j, "key", api_binding(s, "key"));
	json_out_text(j, "user", s->user);
	json_out_text(j, "thread", api_binding(s, "thread"));
	json_out_text(j, "project", s->project);
	json_out_text(j, "fragment", s->fragment);
	json_out_str(j, "template", s->template);
	json_out_text(j, "policy", s->policy);
	json_out_str(j, "state", state_machine_name(&session_states, s->state));
	json_out_str(j, "runtime", runtimes[s->runtime < ARRAY_LEN(runtimes) ? s->runtime : 0]);
	json_out_bool(j, "paused", s->paused);
	json_out_text(j, "sandbox", s->sandbox);
	json_out_text(j, "snapshot", s->snapshot);
	json_out_i64(j, "version", s->version);
	json_out_i64(j, "generation", s->generation);
	json_out_i64(j, "incarnation", s->incarnation);
	put_times(j, s);
	api_put_cause(j, "cause", &s->cause);
	api_put_raw(j, "last_death", s->last_death, "null");
	put_session_limits(c, j, s);
	api_put_raw(j, "metadata", s->metadata, "{}");
	json_out_end(j);
}

void api_put_snapshot(struct json_out *j, const char *key, const struct store_snapshot *s,
		      const struct store_session *of)
{
	json_out_object(j, key);
	json_out_str(j, "id", s->id);
	json_out_text(j, "name", s->name);
	json_out_text(j, "session", s->session);
	json_out_text(j, "session_key", of ? api_binding(of, "key") : "");
	json_out_bool(j, "session_exists", of != NULL);
	json_out_i64(j, "generation", s->generation);
	json_out_i64_if(j, "size_bytes", s->bytes >= 0, s->bytes);
	json_out_i64(j, "created_at", s->created_at);
	json_out_end(j);
}

const char *api_exec_state(uint8_t state)
{
	static const char *const names[] = { [EXEC_RUNNING] = "running",
					     [EXEC_EXITED] = "exited",
					     [EXEC_KILLED] = "killed",
					     [EXEC_LOST] = "lost" };

	return state < ARRAY_LEN(names) ? names[state] : "lost";
}

static void put_end(struct json_out *j, const struct store_exec *x)
{
	bool known = x->state == EXEC_EXITED || x->state == EXEC_KILLED;

	json_out_i64_if(j, "exit_code", known && !x->signal, x->exit_code);
	json_out_i64_if(j, "signal", known && x->signal, x->signal);
	json_out_bool(j, "timed_out", x->timed_out);
	json_out_bool(j, "oom_killed", x->oom_killed);
	json_out_bool(j, "truncated", x->truncated);
	json_out_text(j, "reason", x->reason);
}

void api_put_hits(struct json_out *j, unsigned hits)
{
	json_out_array(j, "limits");
	for (unsigned bit = 1; bit && bit <= hits; bit <<= 1)
		if (hits & bit && guest_exec_hit_name(bit))
			json_out_str(j, NULL, guest_exec_hit_name(bit));
	json_out_end(j);
}

void api_put_exec(struct json_out *j, const char *key, const struct store_exec *x)
{
	json_out_object(j, key);
	json_out_str(j, "exec_id", x->id);
	json_out_str(j, "session", x->session);
	api_put_raw(j, "command", x->command, "null");
	json_out_str(j, "state", api_exec_state(x->state));
	json_out_bool(j, "background", x->background);
	put_end(j, x);
	api_put_hits(j, (unsigned)x->hits);
	json_out_i64(j, "stdout_bytes", x->stdout_bytes);
	json_out_i64(j, "stderr_bytes", x->stderr_bytes);
	json_out_i64(j, "started_at", x->started_at);
	json_out_i64_if(j, "ended_at", x->ended_at, x->ended_at);
	json_out_i64_if(j, "duration_ms", x->ended_at, x->ended_at - x->started_at);
	json_out_object(j, "usage");
	json_out_i64(j, "cpu_ms", x->cpu_ms);
	json_out_i64(j, "max_rss_bytes", x->max_rss_bytes);
	json_out_end(j);
	json_out_end(j);
}

const char *api_outcome_name(enum session_outcome o)
{
	static const char *const names[] = { [SESSION_CREATED] = "created",
					     [SESSION_REUSED] = "reused",
					     [SESSION_RESUMED] = "resumed",
					     [SESSION_REPLACED] = "replaced" };

	return names[o] ? names[o] : "none";
}

/* ---- input ----------------------------------------------------------------------------------- */

static int parse_cpus(const json_t *v, struct template *t, struct err *err)
{
	double cpus = json_number_value(v);

	if (!json_is_number(v) || !(cpus == 0 || cpus >= LIMITS_CPU_MILLI_MIN / 1000.0) ||
	    cpus > LIMITS_CPU_MILLI_MAX / 1000.0)
		return err_set(err, ERR_INVALID, "limits.cpus: must be 0 or between 0.01 and 1024");
	return template_set_limit(t, "cpu_milli", (uint64_t)(cpus * 1000 + 0.5), err);
}

static int parse_limits(json_t *limits, struct template *t, struct err *err)
{
	const char *name;
	json_t *v;

	if (!limits)
		return 0;
	if (!json_is_object(limits))
		return err_set(err, ERR_INVALID, "limits: must be an object");
	json_object_foreach (limits, name, v) {
		if (strcmp(name, "cpus") == 0 && parse_cpus(v, t, err) < 0)
			return -1;
		if (strcmp(name, "cpus") == 0)
			continue;
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return err_set(err, ERR_INVALID,
				       "limits.%.40s: unknown limit or not an integer; use "
				       "memory_bytes, cpus, pids, disk_bytes, inodes, file_bytes, "
				       "open_files or output_bytes",
				       name);
		if (template_set_limit(t, name, (uint64_t)json_integer_value(v), err) < 0)
			return err_ctx(err, "limits");
	}
	return 0;
}

int api_take_env(const char *name, const json_t *value, char **ret, struct err *err)
{
	char *pair;

	if (!json_is_string(value) || !*name || strchr(name, '='))
		return err_set(err, ERR_INVALID, "env.%.60s: invalid name, or not a string", name);
	if (asprintf(&pair, "%s=%s", name, json_string_value(value)) < 0)
		return err_sys(err, ENOMEM, "env");
	*ret = pair;
	return 0;
}

/* {"NAME": "value"} */
static int parse_env(json_t *env, struct template *t, struct err *err)
{
	const char *name;
	json_t *v;

	if (!env)
		return 0;
	if (!json_is_object(env))
		return err_set(err, ERR_INVALID, "env: must be an object of strings");
	if (json_object_size(env) > TEMPLATE_ENV_MAX)
		return err_set(err, ERR_INVALID, "env: more than %d variables", TEMPLATE_ENV_MAX);
	json_object_foreach (env, name, v) {
		auto_free char *pair = NULL;

		if (api_take_env(name, v, &pair, err) < 0)
			return -1;
		if (template_set_env(t, pair, err) < 0)
			return err_ctx(err, "env");
	}
	return 0;
}

static int parse_string(const json_t *o, const char *name, char **ret, struct err *err)
{
	const char *text = NULL;

	if (api_str(o, name, &text, err) < 0)
		return -1;
	if (!text)
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : err_sys(err, ENOMEM, "%s", name);
}

int api_take_spec(const json_t *body, struct template *ret, struct err *err)
{
	bool root = false;

	template_init(ret);
	if (parse_limits(api_member(body, "limits"), ret, err) < 0 ||
	    parse_env(api_member(body, "env"), ret, err) < 0 ||
	    parse_string(body, "run_as", &ret->user, err) < 0 ||
	    parse_string(body, "workdir", &ret->workdir, err) < 0 ||
	    api_choice(body, "class", "user", "root", &root, err) < 0)
		return -1;
	template_demand_limits(ret); /* the caller relies on them */
	ret->class = root ? KEEPER_CLASS_ROOT : KEEPER_CLASS_USER;
	return 0;
}
