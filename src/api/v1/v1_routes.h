/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of /v1. */
#ifndef LODGE_API_V1_V1_ROUTES_H
#define LODGE_API_V1_V1_ROUTES_H

#include "api/core/api_route.h"

/* clang-format off */
#define V1_ROUTES(ROUTE) \
	ROUTE(POST, "/v1/sessions", v1_enter_session, SESSION, 0) \
	ROUTE(GET, "/v1/sessions", v1_list_sessions, SESSION, 0, "*") \
	ROUTE(GET, "/v1/sessions/{id}", v1_get_session, SESSION, 0) \
	ROUTE(PATCH, "/v1/sessions/{id}", v1_update_session, SESSION, 0) \
	ROUTE(DELETE, "/v1/sessions/{id}", v1_delete_session, SESSION, 0, "reason if_version") \
	ROUTE(POST, "/v1/sessions/{id}/probe", v1_probe_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/extend", v1_extend_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/activity", v1_touch_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/pause", v1_pause_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/unpause", v1_unpause_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/hibernate", v1_hibernate_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/resume", v1_resume_session, SESSION, 0) \
	ROUTE(GET, "/v1/sessions/{id}/stats", v1_get_stats, SESSION, 0) \
	ROUTE(GET, "/v1/sessions/{id}/progress", v1_get_session_progress, SESSION, 0) \
	ROUTE(GET, "/v1/events", v1_list_events, SESSION, 0, "session user kind since before order limit all") \
	ROUTE(GET, "/v1/progress", v1_get_progress, SESSION, API_EARLY) \
	ROUTE(POST, "/v1/sessions/{id}/exec", v1_start_exec, SESSION, 0, "resume stdout_offset stderr_offset") \
	ROUTE(GET, "/v1/sessions/{id}/execs", v1_list_execs, SESSION, 0, "limit after") \
	ROUTE(GET, "/v1/sessions/{id}/execs/{exec}", v1_get_exec, SESSION, 0) \
	ROUTE(DELETE, "/v1/sessions/{id}/execs/{exec}", v1_kill_exec, SESSION, 0) \
	ROUTE(GET, "/v1/sessions/{id}/execs/{exec}/output", v1_read_exec_output, SESSION, 0, "stdout_offset stderr_offset wait_ms encoding") \
	ROUTE(POST, "/v1/sessions/{id}/execs/{exec}/stdin", v1_write_exec_stdin, SESSION, 0, "eof") \
	ROUTE(POST, "/v1/sessions/{id}/execs/{exec}/signal", v1_signal_exec, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/execs/{exec}/resize", v1_resize_exec, SESSION, 0) \
	ROUTE(GET, "/v1/sessions/{id}/tty", v1_open_tty, SESSION, 0, "exec offset command cwd user cols rows resume") \
	ROUTE(GET, "/v1/sessions/{id}/files/{path...}", v1_read_file, SESSION, 0, "list depth glob limit after resume") \
	ROUTE(PUT, "/v1/sessions/{id}/files/{path...}", v1_write_file, SESSION, 0, "mode mkdir append resume") \
	ROUTE(POST, "/v1/sessions/{id}/files/{path...}", v1_change_file, SESSION, 0, "mkdir parents mode rename replace stat follow resume") \
	ROUTE(DELETE, "/v1/sessions/{id}/files/{path...}", v1_delete_file, SESSION, 0, "recursive resume") \
	ROUTE(GET, "/v1/sessions/{id}/archive", v1_read_archive, SESSION, 0, "path format resume") \
	ROUTE(PUT, "/v1/sessions/{id}/archive", v1_write_archive, SESSION, 0, "path format resume") \
	ROUTE(GET, "/v1/sessions/{id}/watch", v1_watch_files, SESSION, 0, "path recursive resume") \
	ROUTE(POST, "/v1/sessions/{id}/snapshots", v1_create_snapshot, SESSION, 0) \
	ROUTE(GET, "/v1/sessions/{id}/snapshots", v1_list_session_snapshots, SESSION, 0, "limit after") \
	ROUTE(DELETE, "/v1/sessions/{id}/snapshots/{snap}", v1_delete_session_snapshot, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/fork", v1_fork_session, SESSION, 0) \
	ROUTE(POST, "/v1/sessions/{id}/rollback", v1_roll_back_session, SESSION, 0) \
	ROUTE(GET, "/v1/snapshots", v1_list_snapshots, SESSION, 0, "session user limit after") \
	ROUTE(GET, "/v1/snapshots/{id}", v1_get_snapshot, SESSION, 0) \
	ROUTE(DELETE, "/v1/snapshots/{id}", v1_delete_snapshot, SESSION, 0) \
	ROUTE(GET, "/v1/snapshots/{id}/archive", v1_export_snapshot, SESSION, 0) \
	ROUTE(POST, "/v1/snapshots", v1_import_snapshot, TENANT, 0, "template name") \
	ROUTE(POST, "/v1/keys", v1_create_key, TENANT, 0) \
	ROUTE(GET, "/v1/keys", v1_list_keys, TENANT, 0, "tenant limit after") \
	ROUTE(GET, "/v1/keys/{key}", v1_get_key, TENANT, 0) \
	ROUTE(DELETE, "/v1/keys/{key}", v1_delete_key, TENANT, 0) \
	ROUTE(GET, "/v1/users", v1_list_users, SESSION, 0, "sort order q limit") \
	ROUTE(GET, "/v1/users/{user}", v1_get_user, SESSION, 0) \
	ROUTE(PATCH, "/v1/users/{user}", v1_update_user, TENANT, 0) \
	ROUTE(GET, "/v1/users/{user}/quota", v1_get_quota, SESSION, 0) \
	ROUTE(PUT, "/v1/users/{user}/quota", v1_set_quota, TENANT, 0) \
	ROUTE(GET, "/v1/teams", v1_list_teams, SESSION, 0, "user limit after") \
	ROUTE(GET, "/v1/templates", v1_list_templates, TENANT, 0) \
	ROUTE(POST, "/v1/templates", v1_create_template, ADMIN, 0) \
	ROUTE(GET, "/v1/templates/{name}", v1_get_template, TENANT, 0) \
	ROUTE(POST, "/v1/templates/{name}", v1_upload_template, ADMIN, 0, "format") \
	ROUTE(PATCH, "/v1/templates/{name}", v1_update_template, ADMIN, 0) \
	ROUTE(DELETE, "/v1/templates/{name}", v1_delete_template, ADMIN, 0) \
	ROUTE(GET, "/v1/templates/{name}/environment", v1_get_environment, TENANT, 0) \
	ROUTE(POST, "/v1/templates/{name}/environment", v1_record_environment, ADMIN, 0) \
	ROUTE(POST, "/v1/policies", v1_create_policy, ADMIN, 0) \
	ROUTE(GET, "/v1/policies", v1_list_policies, TENANT, 0, "tenant limit after") \
	ROUTE(GET, "/v1/policies/{name}", v1_get_policy, TENANT, 0, "tenant") \
	ROUTE(PATCH, "/v1/policies/{name}", v1_update_policy, ADMIN, 0, "tenant") \
	ROUTE(DELETE, "/v1/policies/{name}", v1_delete_policy, ADMIN, 0, "tenant") \
	ROUTE(POST, "/v1/policies/{name}/test", v1_test_policy, TENANT, 0, "tenant")
/* clang-format on */

V1_ROUTES(API_DECLARE_HANDLER)

#endif
