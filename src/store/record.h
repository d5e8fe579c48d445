/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the store. Each has one table of columns, STORE_COLUMNS_name, with one row per
 * column: the struct member, the SQL text and the code that binds and reads the column all derive
 * from that row. To add a column, add the row here and the column to a new file in schema/.
 *
 * Strings are NUL-terminated and bounded; "" means none. Times are milliseconds since 1970, 0 means
 * none. A record owns what its OWNED members point to, and its *_fini() frees them; every *_fini()
 * accepts a zeroed record. The store keeps and compares states, modes and roles as numbers without
 * interpreting them. */
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
};

/* The caller owns a list until its *_list_fini(). `next` is the cursor of the following page, 0
 * after the last one. */
#define STORE_LIST(name)                                                                           \
	struct store_##name##_list {                                                               \
		struct store_##name *items;                                                        \
		size_t count;                                                                      \
		int64_t next;                                                                      \
	};                                                                                         \
	void store_##name##_list_fini(struct store_##name##_list *l)

/* ---- kinds of columns ---------------------------------------------------------------------- */

/* A table calls FIRST for its first row and X for the others: a list in SQL needs commas only
 * between its items. */
#define STORE_MEMBER(kind, ...) STORE_MEMBER_##kind(__VA_ARGS__)
#define STORE_MEMBERS(name) STORE_COLUMNS_##name(STORE_MEMBER, STORE_MEMBER)

#define STORE_MEMBER_SEQ(name) int64_t name; /* row number, assigned by the store */
#define STORE_MEMBER_INT(name) int64_t name;
#define STORE_MEMBER_BYTE(name) uint8_t name;
#define STORE_MEMBER_BOOL(name) bool name;
#define STORE_MEMBER_TEXT(name, size) char name[size]; /* "" is NULL in SQL */
#define STORE_MEMBER_STRING(name, size) char name[size]; /* "" is '' in SQL */
#define STORE_MEMBER_BYTES(name, size) uint8_t name[size];
#define STORE_MEMBER_OWNED(name) char *name; /* NULL or text of any length */
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
	FIRST(TEXT, kind, STORE_WORD) /* "user", "thread", "session", "project", "key" */          \
	X(TEXT, key, STORE_KEY)

struct store_binding {
	STORE_MEMBERS(binding)
};

/* store_session_update() leaves these alone, except that it raises the version. */
#define STORE_COLUMNS_session_fixed(FIRST, X)                                                      \
	FIRST(SEQ, seq) /* order of creation */                                                    \
	X(TEXT, id, STORE_ID)                                                                      \
	X(INT, version) /* set by the store: raised by every write */                              \
	X(TEXT, tenant, STORE_NAME)                                                                \
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
	X(INT, max_lifetime_ms) /* likewise */                                                     \
	X(INT, hibernate_at)                                                                       \
	X(INT, expires_at)                                                                         \
	X(INT, due_at) /* when the sweep must check the session; 0: never */                       \
	X(INT, memory_bytes) /* counts against the quota */                                        \
	X(INT, disk_bytes) /* likewise */                                                          \
	X(CAUSE, cause)                                                                            \
	X(OWNED, spec) /* a JSON object of the engine: limits, environment */                      \
	X(OWNED, metadata) /* a JSON object of the caller */                                       \
	X(TEXT, policy, STORE_NAME) /* of its tenant */
#define STORE_COLUMNS_session(FIRST, X)                                                            \
	STORE_COLUMNS_session_fixed(FIRST, X) STORE_COLUMNS_session_state(X, X)

struct store_session {
	STORE_MEMBERS(session)
	struct store_binding *bindings; /* owned */
	size_t nbindings;
};

void store_session_fini(struct store_session *s);
/* The result is the caller's. ERR_LIMIT without memory; *ret is untouched then. */
int store_session_copy(const struct store_session *s, struct store_session *ret, struct err *err);
STORE_LIST(session);

/* What remains of a deleted session. */
#define STORE_COLUMNS_tombstone(FIRST, X)                                                          \
	FIRST(TEXT, session, STORE_ID)                                                             \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, user, STORE_USER)                                                                  \
	X(INT, created_at)                                                                         \
	X(CAUSE, cause)

struct store_tombstone {
	STORE_MEMBERS(tombstone)
};

/* ---- files --------------------------------------------------------------------------------- */

/* One sealed, immutable set of file changes on top of its parent. */
#define STORE_COLUMNS_layer(FIRST, X)                                                              \
	FIRST(TEXT, id, STORE_ID)                                                                  \
	X(TEXT, parent, STORE_ID)                                                                  \
	X(TEXT, template, STORE_ID) /* below the lowest layer of the stack */                      \
	X(INT, bytes)                                                                              \
	X(INT, created_at)                                                                         \
	X(BOOL, durable) /* synced: survives a power loss */

struct store_layer {
	STORE_MEMBERS(layer)
};
STORE_LIST(layer);

#define STORE_COLUMNS_snapshot(FIRST, X)                                                           \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID)                                                                      \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, session, STORE_ID)                                                                 \
	X(TEXT, name, STORE_NAME) /* unique within the session, if any */                          \
	X(TEXT, layer, STORE_ID)                                                                   \
	X(INT, generation)                                                                         \
	X(INT, bytes)                                                                              \
	X(INT, created_at)

struct store_snapshot {
	STORE_MEMBERS(snapshot)
};
STORE_LIST(snapshot);

/* ---- execs --------------------------------------------------------------------------------- */

#define STORE_COLUMNS_exec_start(FIRST, X)                                                         \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID)                                                                      \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, session, STORE_ID)                                                                 \
	X(INT, incarnation) /* of the sandbox */                                                   \
	X(INT, number) /* of the exec in that sandbox */                                           \
	X(BOOL, background)                                                                        \
	X(INT, started_at)                                                                         \
	X(OWNED, command) /* a JSON array or string */
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
	X(INT, hits) /* enum agent_hit: includes the three booleans */
#define STORE_COLUMNS_exec(FIRST, X)                                                               \
	STORE_COLUMNS_exec_start(FIRST, X) STORE_COLUMNS_exec_result(X, X)

struct store_exec {
	STORE_MEMBERS(exec)
};

void store_exec_fini(struct store_exec *e);
STORE_LIST(exec);

/* An idempotency key: a repeated request gets the result of the first one. */
#define STORE_COLUMNS_once(FIRST, X)                                                               \
	FIRST(TEXT, tenant, STORE_NAME)                                                            \
	X(TEXT, scope, STORE_SCOPE) /* "create" for a user, or the session of an exec */           \
	X(TEXT, key, STORE_KEY)                                                                    \
	X(TEXT, target, STORE_ID) /* the session or exec that the request made */                  \
	X(INT, created_at)

struct store_once {
	STORE_MEMBERS(once)
};

/* ---- events -------------------------------------------------------------------------------- */

#define STORE_COLUMNS_event(FIRST, X)                                                              \
	FIRST(SEQ, id) /* rises and is never reused */                                             \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, session, STORE_ID)                                                                 \
	X(TEXT, kind, STORE_WORD)                                                                  \
	X(INT, version) /* of the session; set by the store for an event of a change */            \
	X(CAUSE, cause) /* cause.at is the time of the event */                                    \
	X(OWNED, data) /* a JSON object */

struct store_event {
	STORE_MEMBERS(event)
};

void store_event_fini(struct store_event *e);
STORE_LIST(event);

/* ---- projects ------------------------------------------------------------------------------ */

#define STORE_COLUMNS_project(FIRST, X)                                                            \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, id, STORE_ID) /* unique within the tenant */                                       \
	X(TEXT, name, STORE_TEXT)                                                                  \
	X(TEXT, owner, STORE_USER)                                                                 \
	X(TEXT, team, STORE_ID)                                                                    \
	X(INT, created_at)

struct store_project {
	STORE_MEMBERS(project)
};
STORE_LIST(project);

struct store_file {
	char *path; /* owned */
	void *data; /* owned; NULL when size is 0 */
	size_t size;
};

void store_file_fini(struct store_file *f);
STORE_LIST(file);

/* One saved set of a project's files, or a name for a snapshot. */
#define STORE_COLUMNS_fragment(FIRST, X)                                                           \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, id, STORE_ID) /* unique within the tenant */                                       \
	X(TEXT, project, STORE_ID)                                                                 \
	X(TEXT, title, STORE_TEXT)                                                                 \
	X(TEXT, snapshot, STORE_ID)                                                                \
	X(INT, files) /* set by the store */                                                       \
	X(INT, bytes) /* set by the store */                                                       \
	X(INT, created_at)

struct store_fragment {
	STORE_MEMBERS(fragment)
};
STORE_LIST(fragment);

/* ---- users --------------------------------------------------------------------------------- */

#define STORE_COLUMNS_user_fixed(FIRST, X)                                                         \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, id, STORE_USER) /* unique within the tenant */                                     \
	X(INT, created_at)
/* store_user_put() changes these of a user that exists. */
#define STORE_COLUMNS_user_state(FIRST, X)                                                         \
	FIRST(TEXT, name, STORE_TEXT)                                                              \
	X(TEXT, email, STORE_TEXT)                                                                 \
	X(TEXT, project, STORE_ID) /* the current project */                                       \
	X(TEXT, fragment, STORE_ID) /* and fragment */
#define STORE_COLUMNS_user(FIRST, X)                                                               \
	STORE_COLUMNS_user_fixed(FIRST, X) STORE_COLUMNS_user_state(X, X)

struct store_user {
	STORE_MEMBERS(user)
};
STORE_LIST(user);

#define STORE_COLUMNS_member(FIRST, X) /* tenant, team and user are unique together */             \
	FIRST(TEXT, tenant, STORE_NAME)                                                            \
	X(TEXT, team, STORE_ID)                                                                    \
	X(TEXT, user, STORE_USER)                                                                  \
	X(BYTE, role)

struct store_member {
	STORE_MEMBERS(member)
};
STORE_LIST(member);

/* An API key. Only its hash is stored. */
#define STORE_COLUMNS_key(FIRST, X)                                                                \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, id, STORE_ID)                                                                      \
	X(BYTES, hash, STORE_HASH)                                                                 \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, user, STORE_USER) /* the key is a token for this user; "" if it is not */          \
	X(TEXT, name, STORE_TEXT)                                                                  \
	X(TEXT, scopes, STORE_TEXT)                                                                \
	X(INT, created_at)                                                                         \
	X(INT, expires_at)

struct store_key {
	STORE_MEMBERS(key)
};
STORE_LIST(key);

#define STORE_COLUMNS_policy_fixed(FIRST, X)                                                       \
	FIRST(SEQ, seq)                                                                            \
	X(TEXT, tenant, STORE_NAME)                                                                \
	X(TEXT, name, STORE_NAME) /* unique within the tenant */                                   \
	X(INT, created_at)
/* store_policy_update() writes these. 0, "" and NULL set no rule. */
#define STORE_COLUMNS_policy_rules(FIRST, X)                                                       \
	FIRST(INT, max_active_per_user)                                                            \
	X(BYTE, on_exceed)                                                                         \
	X(INT, idle_timeout_ms)                                                                    \
	X(INT, max_lifetime_ms)                                                                    \
	X(TEXT, network, STORE_WORD)                                                               \
	X(OWNED, limits) /* a JSON object of the engine */                                         \
	X(OWNED, commands) /* likewise */
#define STORE_COLUMNS_policy(FIRST, X)                                                             \
	STORE_COLUMNS_policy_fixed(FIRST, X) STORE_COLUMNS_policy_rules(X, X)

struct store_policy {
	STORE_MEMBERS(policy)
};

void store_policy_fini(struct store_policy *p);
STORE_LIST(policy);

/* What a sandbox of a template contains, for one version of the template. */
#define STORE_COLUMNS_environment(FIRST, X)                                                        \
	FIRST(TEXT, template, STORE_ID)                                                            \
	X(TEXT, version, STORE_WORD)                                                               \
	X(INT, captured_at)                                                                        \
	X(OWNED, data) /* a JSON object of the engine */

struct store_environment {
	STORE_MEMBERS(environment)
};

void store_environment_fini(struct store_environment *v);

/* 0 is no limit. The user "" stands for the tenant itself. */
#define STORE_COLUMNS_quota(FIRST, X)                                                              \
	FIRST(TEXT, tenant, STORE_NAME)                                                            \
	X(STRING, user, STORE_USER)                                                                \
	X(INT, sandboxes)                                                                          \
	X(INT, memory_bytes)                                                                       \
	X(INT, disk_bytes)                                                                         \
	X(INT, cpu_ms)

struct store_quota {
	STORE_MEMBERS(quota)
};

struct store_usage {
	int64_t sessions, disk_bytes; /* of all sessions */
	int64_t active, memory_bytes; /* of the sessions in the given states */
	int64_t cpu_ms;
};

#endif
