/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the daemon. The command line overrides the environment (LODGE_NAME), which
 * overrides the file ("name = value"). 0 and NULL stand for the default of the component that gets
 * the setting. */
#ifndef LODGE_LODGED_CONFIG_H
#define LODGE_LODGED_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/auto.h"
#include "base/err.h"

enum conf_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_INFO, LEVEL_DEBUG };
enum log_format { LOG_AUTO, LOG_TEXT, LOG_JSON };
enum conf_source { CONF_DEFAULT, CONF_FILE, CONF_ENVIRONMENT, CONF_COMMAND };

enum { CONF_SETTINGS = 80, CONF_LIST_MAX = 64 };
#define CONF_AUTO UINT64_MAX /* of max_active, pool and pool_min, until config_check() */
extern const char *const config_levels[]; /* names of enum conf_level; ends with NULL */

struct config {
	char *data, *user, *api_key, *tls_cert, *tls_key; /* owned */
	char **listen, **origins, **hosts,
		**trusted_proxies; /* owned, NULL-terminated; NULL: none */
	uint64_t log_level, log_format, socket_mode, stop_sandboxes;
	uint64_t max_active, queue_max, pool, probe_failures, environment_snapshots;
	uint64_t idle_timeout, idle_timeout_max, lifetime, lifetime_max, chat_lifetime,
		projects_lifetime, extend, delete_after, probe_timeout, keeper_timeout,
		keep_tombstones, keep_execs, keep_events, drain; /* milliseconds */
	uint64_t template_size, template_time; /* bytes, milliseconds */
	uint64_t import_ratio, keep_execs_max, keep_records_max;
	uint64_t max_connections, max_per_address, max_requests, max_head;
	uint64_t connection_idle, connection_slow; /* milliseconds */
	uint64_t rate, burst, concurrent;
	uint64_t tenant_concurrent, tenant_streams, tenant_body; /* body: bytes */
	uint64_t insecure_no_auth, require_limits;
	uint64_t pool_min;
	uint64_t limits_max_memory, limits_max_disk, limits_max_cpus,
		limits_max_pids; /* cpus: thousandths */
	uint64_t disk_reserve; /* bytes; 0: depends on the disk */
	char *threads_user, *threads_workdir, *threads_network; /* owned */
	char *threads_template, *threads_policy; /* owned */
	uint64_t threads_memory, threads_cpus, threads_pids, threads_file_size, threads_files,
		threads_disk, threads_idle; /* cpus: thousandths; idle: milliseconds */
	uint8_t source[CONF_SETTINGS]; /* enum conf_source of each */
};

void config_init(struct config *c);
void config_fini(struct config *c);

bool config_is_setting(const char *name);
/* ERR_INVALID names the setting. A list from another source is replaced, one from the same source
 * is extended. */
int config_set(struct config *c, enum conf_source from, const char *name, const char *value,
	       struct err *err);
/* Parses the text of a file. Errors name `where` and the line. */
int config_parse(struct config *c, const char *where, const char *text, struct err *err);
int config_read(struct config *c, const char *path, struct err *err);
/* Reads LODGE_* variables with get(). */
int config_environment(struct config *c, char *(*get)(const char *name), struct err *err);
/* True if only this machine can connect. */
bool config_is_loopback(const struct config *c);
bool config_address_is_loopback(const char *address);

#endif
