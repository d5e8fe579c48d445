/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the store. Each has one table of columns, STORE_COLUMNS_name, with one row per
 * column: the struct member, the SQL text and the code that binds and reads the column all derive
 * from that row. To add a column, add the row here and the column to a new file in schema/.
 *
 * Strings are NUL-terminated and bounded; "" means none. Times are milliseconds since 1970, 0 means
 * none. A record owns what its OWNED and JSON members point to, and its *_fini() frees them; every
 * *_fini() accepts a zeroed record. The store keeps and compares states, modes and roles as numbers
 * without interpreting them. */
#ifndef LODGE_STORE_RECORD_H
#define LODGE_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { /* sizes with the NUL */
       STORE_ID = 64,
       STORE_NAME = 64, /* tenants, templates, scopes */
       STORE_WORD = 32, /* kinds and codes */
       STORE_USER = 128, /* end users, actors */
       STORE_KEY = 256, /* the caller's name for its session */
       STORE_SCOPE = STORE_USER + 8, /* of an idempotency key */
       STORE_TEXT = 256, /* sentences, titles */
       STORE_HASH = 32, /* SHA-256; bytes, not text */
};

enum { /* maxima of one record */
       STORE_BINDINGS_MAX = 16,
       STORE_JSON_MAX = 64 << 10,
       STORE_COMMAND_MAX = 1 << 20,
       STORE_FILES_MAX = 10000,
       STORE_PAGE_MAX = 1000, /* records per list call */
       STORE_ROWS_MAX = 5000, /* rows per call */
       STORE_USERS_MAX = 10000, /* users per call */
       STORE_STATES = 64, /* numbers of states are below this */
};

/* The caller owns a list until its *_list_fini(). `next` is the cursor of the following page, 0
 * after the last one. */
#define STORE_LIST(name)                                                                           \
	struct store_##name##_list {                                                               \
		struct store_##name *items;                                                        \
		size_t count;                                                                      \
		int64_t next;                                                                      \
	};                                                                                         \
	void store_##name##_fini(struct store_##name *r);                                          \
	void store_##name##_list_fini(struct store_##name##_list *l)

/* ---- kinds of columns ---------------------------------------------------------------------- */

/* A table calls FIRST for its first row and X for the others: a list in SQL needs commas only
 * between its items. */
#define STORE_MEMBER(kind, ...) STORE_MEMBER_##kind(__VA_ARGS__)
#define STORE_MEMBERS(name) STORE_COLUMNS_##name(STORE_MEMBER, STORE_MEMBER)
#define STORE_RECORD(name)                                                                         \
	struct store_##name {                                                                      \
		STORE_MEMBERS(name)                                                                \
	}

#define STORE_MEMBER_SEQ(name) int64_t name; /* row number, assigned by the store */
#define STORE_MEMBER_INT(name) int64_t name;
#define STORE_MEMBER_BYTE(name) uint8_t name;
#define STORE_MEMBER_BOOL(name) bool name;
/* "" is NULL in SQL, and invalid if the row ends with a label for the message */
#define STORE_MEMBER_TEXT(name, size, ...) char name[size];
#define STORE_MEMBER_STRING(name, size) char name[size]; /* "" is '' in SQL */
#define STORE_MEMBER_BYTES(name, size) uint8_t name[size];
#define STORE_MEMBER_OWNED(name, max, label) char *name; /* NULL or text */
#define STORE_MEMBER_JSON(name, label) char *name; /* NULL or the text of a JSON object */
#define STORE_MEMBER_CAUSE(name) struct store_cause name; /* four columns */

/* Why a record is in its state. */
struct store_cause {
	char code[STORE_WORD];
	char text[STORE_TEXT];
	char actor[STORE_USER];
	int64_t at;
};

/* ---- sessions ------------------------------------------------------------------------------ */

#define STORE_COLUMNS_binding(FIRST, X)                                                            \
	/* "user", "thread", "session", "project", "key" */                                        \
	FIRST(TEXT, kind, STORE_WORD, "kind of a key")                                             \
	X(TEXT, key, STORE_KEY, "key")
STORE_RECORD(binding);

/* store_session_update() leaves these alone, except that it raises the version. */
#define STORE_COLUMNS_session_fixed(FIRST, X)                                                      \
	FIRST(SEQ, seq) /* order of creation */                                                    \
	X(TEXT, id, STORE_ID, "session id")                                                        \
	X(INT, version) /* set by the store: raised by every write */                              \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, user, STORE_USER)                                                                  \
	X(INT, created_at)
#define STORE_COLUMNS_session_state(FIRST, X)                                                      \
	FIRST(TEXT, template, STORE_ID)                                                            \
	X(TEXT, sandbox, STORE_ID) /* the running machine */                                       \
	X(TEXT, layer, STORE_ID) /* the newest sealed layer */                                     \
	X(TEXT, snapshot, STORE_ID) /* the newest snapshot */                                      \
	X(TEXT, project, STORE_ID)                                                                 \
	X(TEXT, fragment, STORE_ID)                                                                \
	X(BYTE, state)                                                                             \
	X(BYTE, runtime)                                                                           \
	X(BYTE, on_idle)                                                                           \
	X(BYTE, on_expire)                                                                         \
	X(BOOL, paused)                                                                            \
	X(INT, generation)                                                                         \
	X(INT, incarnation)                                                                        \
	X(INT, started_at)                                                                         \
	X(INT, last_activity_at)                                                                   \
	X(INT, idle_timeout_ms) /* a preference: never cleared */                                  \
	X(INT, max_lifetime_ms) /* likewise: how far a sandbox can be extended */                  \
	X(INT, hibernate_at)                                                                       \
	X(INT, expires_at)                                                                         \
	X(INT, due_at) /* when the sweep must check the session; 0: never */                       \
	X(INT, memory_bytes) /* counts against the quota */                                        \
	X(INT, disk_bytes) /* likewise */                                                          \
	X(CAUSE, cause)                                                                            \
	X(JSON, spec, "spec") /* a JSON object of the engine: limits, environment */               \
	X(JSON, metadata, "metadata") /* a JSON object of the caller */                            \
	X(TEXT, policy, STORE_NAME) /* of its tenant */                                            \
	X(BYTE, ended) /* enum session_ended of its last sandbox */                                \
	X(JSON, last_death, "last death") /* how its last sandbox ended; of the engine */          \
	X(TEXT, boot_id, STORE_ID) /* of the host when its sandbox started */                      \
	X(INT, lifetime_ms) /* of a sandbox until its first expiry: a preference */                \
	X(INT, delete_after_ms) /* once hibernated; 0: never */                                    \
	X(INT, hibernated_at) /* 0 unless hibernated */
#define STORE_COLUMNS_session(FIRST, X)                                                            \
	STORE_COLUMNS_session_fixed(FIRST, X) STORE_COLUMNS_session_state(X, X)

struct store_session {
	STORE_MEMBERS(session)
	struct store_binding *bindings; /* owned */
	size_t nbindings;
};

/* The result is the caller's. ERR_LIMIT without memory; *ret is untouched then. */
int store_session_copy(const struct store_session *s, struct store_session *ret, struct err *err);
STORE_LIST(session);

/* A session as a row of a table: read by store_session_rows(), which computes the last two. */
#define STORE_COLUMNS_row(FIRST, X)                                                                \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID)                                                                      \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, user, STORE_USER)                                                                  \
	X(TEXT, project, STORE_ID)                                                                 \
	X(TEXT, template, STORE_ID)                                                                \
	X(TEXT, sandbox, STORE_ID)                                                                 \
	X(BYTE, state)                                                                             \
	X(BYTE, runtime)                                                                           \
	X(BYTE, on_idle)                                                                           \
	X(BYTE, on_expire)                                                                         \
	X(BOOL, paused)                                                                            \
	X(INT, created_at)                                                                         \
	X(INT, last_activity_at)                                                                   \
	X(INT, hibernate_at)                                                                       \
	X(INT, expires_at)                                                                         \
	X(INT, due_at)                                                                             \
	X(INT, memory_bytes)                                                                       \
	X(INT, disk_bytes)                                                                         \
	X(CAUSE, cause)                                                                            \
	X(TEXT, key, STORE_KEY)                                                                    \
	X(INT, layer_bytes) /* of its sealed files, down to the template */
STORE_RECORD(row);
STORE_LIST(row);

/* What remains of a deleted session. */
#define STORE_COLUMNS_tombstone(FIRST, X)                                                          \
	FIRST(TEXT, session, STORE_ID)                                                             \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, user, STORE_USER)                                                                  \
	X(INT, created_at)                                                                         \
	X(CAUSE, cause)
STORE_RECORD(tombstone);

/* What remains of a sandbox; its session may go on with another one. */
#define STORE_COLUMNS_ended_sandbox(FIRST, X)                                                      \
	FIRST(TEXT, id, STORE_ID)                                                                  \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, session, STORE_ID)                                                                 \
	X(CAUSE, cause)
STORE_RECORD(ended_sandbox);

/* ---- files --------------------------------------------------------------------------------- */

/* One sealed, immutable set of file changes on top of its parent. */
#define STORE_COLUMNS_layer(FIRST, X)                                                              \
	FIRST(TEXT, id, STORE_ID, "layer id")                                                      \
	X(TEXT, parent, STORE_ID)                                                                  \
	X(TEXT, template, STORE_ID, "template") /* below the lowest layer of the stack */          \
	X(INT, bytes)                                                                              \
	X(INT, created_at)                                                                         \
	X(BOOL, durable) /* synced: survives a power loss */
STORE_RECORD(layer);
STORE_LIST(layer);

#define STORE_COLUMNS_snapshot(FIRST, X)                                                           \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID, "snapshot id")                                                       \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, session, STORE_ID)                                                                 \
	X(TEXT, name, STORE_NAME) /* unique within the session, if any */                          \
	X(TEXT, layer, STORE_ID, "layer")                                                          \
	X(INT, generation)                                                                         \
	X(INT, bytes)                                                                              \
	X(INT, created_at)
STORE_RECORD(snapshot);
STORE_LIST(snapshot);

/* ---- execs --------------------------------------------------------------------------------- */

#define STORE_COLUMNS_exec_start(FIRST, X)                                                         \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID, "exec id")                                                           \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, session, STORE_ID, "session")                                                      \
	X(INT, incarnation) /* of the sandbox */                                                   \
	X(INT, number) /* of the exec in that sandbox */                                           \
	X(BOOL, background)                                                                        \
	X(INT, started_at)                                                                         \
	X(OWNED, command, STORE_COMMAND_MAX, "the command") /* a JSON array or string */
/* store_exec_finish() writes these. */
#define STORE_COLUMNS_exec_result(FIRST, X)                                                        \
	FIRST(BYTE, state) /* 0 while it runs */                                                   \
	X(BOOL, timed_out)                                                                         \
	X(BOOL, oom_killed)                                                                        \
	X(BOOL, truncated)                                                                         \
	X(INT, exit_code)                                                                          \
	X(INT, signal)                                                                             \
	X(INT, ended_at)                                                                           \
	X(INT, stdout_bytes)                                                                       \
	X(INT, stderr_bytes)                                                                       \
	X(INT, cpu_ms)                                                                             \
	X(INT, max_rss_bytes)                                                                      \
	X(INT, hits) /* enum agent_hit: includes the three booleans */                             \
	X(TEXT, reason, STORE_TEXT) /* why lodge ended it; "": it ended by itself */               \
	X(BOOL, start_failed) /* its caller got an error instead of a result */
#define STORE_COLUMNS_exec(FIRST, X)                                                               \
	STORE_COLUMNS_exec_start(FIRST, X) STORE_COLUMNS_exec_result(X, X)
STORE_RECORD(exec);
STORE_LIST(exec);

/* An idempotency key: a repeated request gets the result of the first one. */
#define STORE_COLUMNS_once(FIRST, X)                                                               \
	FIRST(TEXT, tenant, STORE_NAME, "tenant")                                                  \
	X(TEXT, scope, STORE_SCOPE, "scope") /* "create" for a user, or the session of an exec */  \
	X(TEXT, key, STORE_KEY, "key")                                                             \
	X(TEXT, target, STORE_ID, "target") /* the session or exec that the request made */        \
	X(INT, created_at)
STORE_RECORD(once);

/* ---- events -------------------------------------------------------------------------------- */

#define STORE_COLUMNS_event(FIRST, X)                                                              \
	FIRST(SEQ, id) /* rises and is never reused */                                             \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, session, STORE_ID)                                                                 \
	X(TEXT, kind, STORE_WORD, "kind of an event")                                              \
	X(INT, version) /* of the session; set by the store for an event of a change */            \
	X(CAUSE, cause) /* cause.at is the time of the event */                                    \
	X(JSON, data, "data of an event") /* a JSON object */                                      \
	X(TEXT, key, STORE_KEY) /* of the session; set by the store, as is the user */             \
	X(TEXT, user, STORE_USER)                                                                  \
	X(TEXT, exec, STORE_ID)
STORE_RECORD(event);
STORE_LIST(event);

/* ---- projects ------------------------------------------------------------------------------ */

#define STORE_COLUMNS_project(FIRST, X)                                                            \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, id, STORE_ID, "project id") /* unique within the tenant */                         \
	X(TEXT, name, STORE_TEXT)                                                                  \
	X(TEXT, owner, STORE_USER, "owner")                                                        \
	X(TEXT, team, STORE_ID)                                                                    \
	X(INT, created_at)
STORE_RECORD(project);
STORE_LIST(project);

struct store_file {
	char *path; /* owned */
	void *data; /* owned; NULL when size is 0 */
	size_t size;
};
STORE_LIST(file);

/* One saved set of a project's files, or a name for a snapshot. */
#define STORE_COLUMNS_fragment(FIRST, X)                                                           \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, id, STORE_ID, "fragment id") /* unique within the tenant */                        \
	X(TEXT, project, STORE_ID, "project")                                                      \
	X(TEXT, title, STORE_TEXT)                                                                 \
	X(TEXT, snapshot, STORE_ID)                                                                \
	X(INT, files) /* set by the store */                                                       \
	X(INT, bytes) /* set by the store */                                                       \
	X(INT, created_at)
STORE_RECORD(fragment);
STORE_LIST(fragment);

/* ---- users --------------------------------------------------------------------------------- */

#define STORE_COLUMNS_user_fixed(FIRST, X)                                                         \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, id, STORE_USER, "user id") /* unique within the tenant */                          \
	X(INT, created_at)
/* store_user_put() changes these of a user that exists. */
#define STORE_COLUMNS_user_state(FIRST, X)                                                         \
	FIRST(TEXT, name, STORE_TEXT)                                                              \
	X(TEXT, email, STORE_TEXT)                                                                 \
	X(TEXT, project, STORE_ID) /* the current project */                                       \
	X(TEXT, fragment, STORE_ID) /* and fragment */
#define STORE_COLUMNS_user(FIRST, X)                                                               \
	STORE_COLUMNS_user_fixed(FIRST, X) STORE_COLUMNS_user_state(X, X)
STORE_RECORD(user);
STORE_LIST(user);

/* A user with what it has: read by store_user_rows(). A user without a record but with sessions or
 * a quota has one too. */
#define STORE_COLUMNS_user_row(FIRST, X)                                                           \
	FIRST(TEXT, id, STORE_USER)                                                                \
	X(TEXT, name, STORE_TEXT)                                                                  \
	X(TEXT, email, STORE_TEXT)                                                                 \
	X(INT, sessions)                                                                           \
	X(INT, active) /* in the states that count as active: these, */                            \
	X(INT, memory_bytes) /* and the sum of their limits */                                     \
	X(INT, disk_bytes) /* sum of the limits of all sessions */                                 \
	X(INT, last_activity_at)                                                                   \
	X(INT, cpu_ms) /* charged, in all */                                                       \
	X(INT, cpu_day_ms) /* and since the given hour */                                          \
	X(INT, layer_bytes) /* of sealed files, those of snapshots included */                     \
	X(INT, quota_sandboxes)                                                                    \
	X(INT, quota_memory)                                                                       \
	X(INT, quota_disk)                                                                         \
	X(INT, quota_cpu_ms)
STORE_RECORD(user_row);
STORE_LIST(user_row);

/* A number of a tenant. */
#define STORE_COLUMNS_tenant_sum(FIRST, X)                                                         \
	FIRST(TEXT, tenant, STORE_NAME)                                                            \
	X(BYTE, state)                                                                             \
	X(INT, sum)
STORE_RECORD(tenant_sum);
STORE_LIST(tenant_sum);

#define STORE_COLUMNS_member(FIRST, X) /* tenant, team and user are unique together */             \
	FIRST(TEXT, tenant, STORE_NAME, "tenant")                                                  \
	X(TEXT, team, STORE_ID, "team")                                                            \
	X(TEXT, user, STORE_USER, "user")                                                          \
	X(BYTE, role)
STORE_RECORD(member);
STORE_LIST(member);

/* A team with what it has: read by store_team_rows(). */
#define STORE_COLUMNS_team_row(FIRST, X)                                                           \
	FIRST(SEQ, seq) /* its place in the order of names */                                      \
	X(TEXT, team, STORE_ID)                                                                    \
	X(INT, members)                                                                            \
	X(INT, projects)                                                                           \
	X(BYTE, role) /* of the user that was asked for; 0: none */
STORE_RECORD(team_row);
STORE_LIST(team_row);

/* An API key. Only its hash is stored. */
#define STORE_COLUMNS_key(FIRST, X)                                                                \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID, "key id")                                                            \
	X(BYTES, hash, STORE_HASH)                                                                 \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, user, STORE_USER) /* the key is a token for this user; "" if it is not */          \
	X(TEXT, name, STORE_TEXT)                                                                  \
	X(TEXT, scopes, STORE_TEXT)                                                                \
	X(INT, created_at)                                                                         \
	X(INT, expires_at)
STORE_RECORD(key);
STORE_LIST(key);

#define STORE_COLUMNS_policy_fixed(FIRST, X)                                                       \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME, "tenant")                                                      \
	X(TEXT, name, STORE_NAME, "policy") /* unique within the tenant */                         \
	X(INT, created_at)
/* store_policy_update() writes these. 0, "" and NULL set no rule. */
#define STORE_COLUMNS_policy_rules(FIRST, X)                                                       \
	FIRST(INT, max_active_per_user)                                                            \
	X(BYTE, on_exceed)                                                                         \
	X(INT, idle_timeout_ms)                                                                    \
	X(INT, max_lifetime_ms)                                                                    \
	X(TEXT, network, STORE_WORD)                                                               \
	X(JSON, limits, "limits") /* a JSON object of the engine */                                \
	X(JSON, commands, "commands") /* likewise */
#define STORE_COLUMNS_policy(FIRST, X)                                                             \
	STORE_COLUMNS_policy_fixed(FIRST, X) STORE_COLUMNS_policy_rules(X, X)
STORE_RECORD(policy);
STORE_LIST(policy);

/* What a sandbox of a template contains, for one version of the template. */
#define STORE_COLUMNS_environment(FIRST, X)                                                        \
	FIRST(TEXT, template, STORE_ID, "template")                                                \
	X(TEXT, version, STORE_WORD, "version")                                                    \
	X(INT, captured_at)                                                                        \
	X(JSON, data, "data") /* a JSON object of the engine */
STORE_RECORD(environment);
void store_environment_fini(struct store_environment *v);

/* 0 is no limit. The user "" stands for the tenant itself. */
#define STORE_COLUMNS_quota(FIRST, X)                                                              \
	FIRST(TEXT, tenant, STORE_NAME, "tenant")                                                  \
	X(STRING, user, STORE_USER)                                                                \
	X(INT, sandboxes)                                                                          \
	X(INT, memory_bytes)                                                                       \
	X(INT, disk_bytes)                                                                         \
	X(INT, cpu_ms)
STORE_RECORD(quota);

struct store_usage {
	int64_t sessions, disk_bytes; /* of all sessions */
	int64_t active, memory_bytes; /* of the sessions in the given states */
	int64_t cpu_ms;
};

#endif
