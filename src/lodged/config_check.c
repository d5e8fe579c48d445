/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/config_check.h"

#include <string.h>
#include <unistd.h>

#include "base/host_memory.h"
#include "http/server.h"
#include "lodged/server_tls.h"
#include "service/engine_opts.h"
#include "session/capacity.h"
#include "thread/thread.h"

#define TENANT_BODY (256ull << 20)

enum {
	POOL_MIN = 3,
	POOL_TARGET = 10,
	POOL_BYTES_EACH = 256 << 20, /* of available memory: the limit of a thread's sandbox */
};

/* ---- settings to options --------------------------------------------------------------------- */

static struct limits get_limits_max(const struct config *c)
{
	return (struct limits){ .memory_bytes = c->limits_max_memory,
				.disk_bytes = c->limits_max_disk,
				.cpu_milli = (uint32_t)c->limits_max_cpus,
				.pids = (uint32_t)c->limits_max_pids };
}

void config_threads(const struct config *c, struct thread_config *ret)
{
	*ret = (struct thread_config){ .memory_bytes = c->threads_memory,
				       .cpu_milli = c->threads_cpus,
				       .pids = c->threads_pids,
				       .file_bytes = c->threads_file_size,
				       .disk_bytes = c->threads_disk,
				       .files = c->threads_files,
				       .idle_ms = (int64_t)c->threads_idle,
				       .user = c->threads_user,
				       .workdir = c->threads_workdir,
				       .template = c->threads_template,
				       .policy = c->threads_policy,
				       .max = get_limits_max(c),
				       .pool_min = (unsigned)c->pool_min,
				       .pool = (unsigned)c->pool };
}

/* What one tenant may have of the service, unless it is set. */
static void set_tenant(const struct config *c, struct engine_opts *o)
{
	uint64_t requests = c->max_requests ? c->max_requests : HTTP_REQUESTS;
	uint64_t connections = c->max_connections ? c->max_connections : HTTP_CONNECTIONS;

	o->tenant_requests =
		(unsigned)(c->tenant_concurrent ? c->tenant_concurrent : (requests * 3 + 3) / 4);
	o->tenant_streams =
		(unsigned)(c->tenant_streams ? c->tenant_streams : (connections + 1) / 2);
	o->tenant_body_bytes = c->tenant_body ? c->tenant_body : TENANT_BODY;
}

void config_engine(const struct config *c, struct engine_opts *ret)
{
	*ret = (struct engine_opts){
		.max_active = c->max_active ? (unsigned)c->max_active : ENGINE_UNLIMITED,
		.queue_max = (unsigned)c->queue_max,
		.pool = (unsigned)c->pool,
		.environments = c->environment_snapshots != 0,
		.pool_min = (unsigned)c->pool_min,
		.require_limits = c->require_limits != 0,
		.idle_ms = (int64_t)c->idle_timeout,
		.idle_max_ms = (int64_t)c->idle_timeout_max,
		.lifetime_ms = (int64_t)c->lifetime,
		.lifetime_max_ms = (int64_t)c->lifetime_max,
		.project_lifetime_ms = (int64_t)c->projects_lifetime,
		.extend_ms = (int64_t)c->extend,
		.delete_after_ms = (int64_t)c->delete_after,
		.probe_ms = (int64_t)c->probe_timeout,
		.keeper_timeout_ms = (int64_t)c->keeper_timeout,
		.probe_failures = (unsigned)c->probe_failures,
		.limits_max = get_limits_max(c),
		.template_bytes = c->template_size,
		.import_ratio = c->import_ratio ? (unsigned)c->import_ratio : ENGINE_UNLIMITED,
		.disk_reserve = c->disk_reserve,
		.template_ms = (int64_t)c->template_time,
		.tombstones_ms = (int64_t)c->keep_tombstones,
		.execs_ms = (int64_t)c->keep_execs,
		.events_ms = (int64_t)c->keep_events,
		.execs_max = c->keep_execs_max ? (unsigned)c->keep_execs_max : ENGINE_UNLIMITED,
		.rows_max = c->keep_records_max ? (unsigned)c->keep_records_max : ENGINE_UNLIMITED,
	};
	set_tenant(c, ret);
}

/* ---- values for this machine ----------------------------------------------------------------- */

/* The pool of other services of this kind has 10 sandboxes, of which 3 are made first. */
static uint64_t auto_pool(void)
{
	uint64_t n = host_memory_available() / POOL_BYTES_EACH;

	if (geteuid() != 0) /* a rootless keeper has none */
		return 0;
	return n < POOL_TARGET ? n : POOL_TARGET;
}

static uint64_t at_most(uint64_t n, uint64_t max)
{
	return max && n > max ? max : n;
}

/* Replaces CONF_AUTO by values for this machine. */
static void resolve(struct config *c)
{
	bool any = c->max_active == CONF_AUTO;

	if (any)
		c->max_active = capacity_default();
	if (c->pool == CONF_AUTO)
		c->pool = at_most(auto_pool(), c->max_active);
	else if (any && c->pool > c->max_active)
		c->max_active = c->pool;
	if (c->pool_min == CONF_AUTO)
		c->pool_min = c->pool < POOL_MIN ? c->pool : POOL_MIN;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_no_auth(const struct config *c, struct err *err)
{
	if (!c->insecure_no_auth)
		return 0;
	if (!config_is_loopback(c))
		return err_set(err, ERR_INVALID,
			       "insecure_no_auth: every address must be a loopback address or a "
			       "unix socket; other hosts would have full access");
	for (char *const *o = c->origins; o && *o; o++)
		if (strcmp(*o, "*") == 0)
			return err_set(err, ERR_INVALID,
				       "insecure_no_auth: not allowed with origins = *; any web "
				       "page would have full access");
	return 0;
}

static int check_pool(const struct config *c, struct err *err)
{
	if (c->pool_min > c->pool)
		return err_set(err, ERR_INVALID, "pool_min: must not exceed pool");
	if (c->max_active && c->pool > c->max_active)
		return err_set(err, ERR_INVALID, "pool: must not exceed max_active");
	return 0;
}

/* Those of the engine, and those of single APIs, which have the same maxima. */
static int check_times(const struct config *c, struct err *err)
{
	struct engine_opts o;

	config_engine(c, &o);
	if (engine_opts_resolve(&o, err) < 0 ||
	    engine_opts_check_time("threads_idle", (int64_t)c->threads_idle, "idle_timeout_max",
				   o.idle_max_ms, err) < 0)
		return -1;
	return engine_opts_check_time("chat_lifetime", (int64_t)c->chat_lifetime, "lifetime_max",
				      o.lifetime_max_ms, err);
}

int config_check(struct config *c, struct err *err)
{
	struct thread_config t;

	resolve(c);
	if (check_no_auth(c, err) < 0 || check_pool(c, err) < 0 || check_times(c, err) < 0)
		return -1;
	if (!c->tls_cert != !c->tls_key)
		return err_set(err, ERR_INVALID, "tls_cert and tls_key: set both or neither");
	config_threads(c, &t);
	if (thread_config_check(&t, err) < 0)
		return -1;
	return c->tls_cert ? tls_check(c->tls_cert, c->tls_key, err) : 0;
}
