/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, as plain structs. Strings are NUL-terminated and bounded; an empty one is "none".
 * Times are milliseconds since 1970, 0 is "none". Where a record owns memory the member says so,
 * and its *_fini() frees it; every *_fini() takes a record of zeros. States, modes and roles are
 * numbers that the store keeps and compares but does not interpret. */
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
       STORE_KEY = 256, /* what a caller calls its session */
       STORE_TEXT = 256, /* sentences, titles */
       STORE_HASH = 32, /* SHA-256; bytes, not text */
};

enum { /* what one record may hold */
       STORE_BINDINGS_MAX = 16,
       STORE_JSON_MAX = 64 << 10,
       STORE_COMMAND_MAX = 1 << 20,
       STORE_FILES_MAX = 10000,
       STORE_PAGE_MAX = 1000, /* records per list call */
};

/* A list is the caller's until its *_list_fini(). `next` is the cursor of the page after it, 0 when
 * this one is not full. */
#define STORE_LIST(name)                                                                           \
	struct store_##name##_list {                                                               \
		struct store_##name *items;                                                        \
		size_t count;                                                                      \
		int64_t next;                                                                      \
	};                                                                                         \
	void store_##name##_list_fini(struct store_##name##_list *l)

/* Why something is as it is. */
struct store_cause {
	char code[STORE_WORD];
	char text[STORE_TEXT];
	char actor[STORE_USER];
	int64_t at;
};

/* ---- sessions ------------------------------------------------------------------------------ */

struct store_binding {
	char kind[STORE_WORD]; /* "user", "thread", "session", "project", "key" */
	char key[STORE_KEY];
};

struct store_session {
	int64_t seq; /* order of creation; given by the store */
	char id[STORE_ID];
	int64_t version; /* given by the store: raised by every write */
	char tenant[STORE_NAME], user[STORE_USER], template[STORE_ID];
	char sandbox[STORE_ID]; /* the live machine */
	char layer[STORE_ID]; /* the newest sealed file state */
	char snapshot[STORE_ID]; /* the newest snapshot */
	char project[STORE_ID], fragment[STORE_ID];
	char policy[STORE_NAME]; /* of its tenant */
	uint8_t state, runtime, on_idle, on_expire;
	bool paused;
	int64_t generation, incarnation;
	int64_t created_at, started_at, last_activity_at;
	int64_t idle_timeout_ms, max_lifetime_ms; /* preferences: never wiped */
	int64_t hibernate_at, expires_at;
	int64_t due_at; /* when the sweep must look at it; 0: not by itself */
	int64_t memory_bytes, disk_bytes; /* what counts against the quota */
	struct store_cause cause;
	char *spec; /* owned; a JSON object of the engine: limits, environment */
	char *metadata; /* owned; a JSON object of the caller */
	struct store_binding *bindings; /* owned */
	size_t nbindings;
};

void store_session_fini(struct store_session *s);
/* The result is the caller's. ERR_LIMIT without memory; *ret is untouched then. */
int store_session_copy(const struct store_session *s, struct store_session *ret, struct err *err);
STORE_LIST(session);

/* What is told of a session that was destroyed. */
struct store_tombstone {
	char session[STORE_ID], tenant[STORE_NAME], user[STORE_USER];
	int64_t created_at;
	struct store_cause cause;
};

/* ---- files --------------------------------------------------------------------------------- */

/* One sealed, immutable set of file changes on top of its parent. */
struct store_layer {
	char id[STORE_ID], parent[STORE_ID];
	char template[STORE_ID]; /* what the lowest of the stack lies on */
	int64_t bytes, created_at;
	bool durable; /* synced: a power loss does not take it */
};
STORE_LIST(layer);

struct store_snapshot {
	int64_t seq; /* given by the store */
	char id[STORE_ID], tenant[STORE_NAME], session[STORE_ID];
	char name[STORE_NAME]; /* unique within the session, if any */
	char layer[STORE_ID];
	int64_t generation, bytes, created_at;
};
STORE_LIST(snapshot);

/* ---- commands ------------------------------------------------------------------------------ */

struct store_exec {
	int64_t seq; /* given by the store */
	char id[STORE_ID], tenant[STORE_NAME], session[STORE_ID];
	int64_t incarnation, number; /* of the sandbox, and of the command in it */
	uint8_t state; /* 0 while it runs */
	bool background, timed_out, oom_killed, truncated;
	int64_t exit_code, signal;
	int64_t started_at, ended_at;
	int64_t stdout_bytes, stderr_bytes, cpu_ms, max_rss_bytes;
	int64_t hits; /* enum agent_hit: the three above, and more */
	char *command; /* owned; a JSON array or string */
};

void store_exec_fini(struct store_exec *e);
STORE_LIST(exec);

/* One promise that a repeated request gets the first one's result. */
struct store_once {
	char tenant[STORE_NAME];
	char scope[STORE_USER + 8]; /* "create" for a user, or the session of an exec */
	char key[STORE_KEY];
	char target[STORE_ID]; /* the session or exec it led to */
	int64_t created_at;
};

/* ---- events -------------------------------------------------------------------------------- */

struct store_event {
	int64_t id; /* given by the store: rises, never used twice */
	char tenant[STORE_NAME], session[STORE_ID], kind[STORE_WORD];
	int64_t version; /* of the session, given by the store where the event goes with a change */
	struct store_cause cause; /* cause.at is the event's time */
	char *data; /* owned; a JSON object */
};

void store_event_fini(struct store_event *e);
STORE_LIST(event);

/* ---- projects ------------------------------------------------------------------------------ */

struct store_project {
	int64_t seq; /* given by the store */
	char tenant[STORE_NAME], id[STORE_ID]; /* unique together */
	char name[STORE_TEXT], owner[STORE_USER], team[STORE_ID];
	int64_t created_at;
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
struct store_fragment {
	int64_t seq; /* given by the store */
	char tenant[STORE_NAME], id[STORE_ID]; /* unique together */
	char project[STORE_ID], title[STORE_TEXT], snapshot[STORE_ID];
	int64_t files, bytes; /* given by the store */
	int64_t created_at;
};
STORE_LIST(fragment);

/* ---- people -------------------------------------------------------------------------------- */

struct store_user {
	int64_t seq; /* given by the store */
	char tenant[STORE_NAME], id[STORE_USER]; /* unique together */
	char name[STORE_TEXT], email[STORE_TEXT];
	char project[STORE_ID], fragment[STORE_ID]; /* where the user is now */
	int64_t created_at;
};
STORE_LIST(user);

struct store_member {
	char tenant[STORE_NAME], team[STORE_ID], user[STORE_USER]; /* unique together */
	uint8_t role;
};
STORE_LIST(member);

/* An API key. The key itself is nowhere. */
struct store_key {
	int64_t seq; /* given by the store */
	char id[STORE_ID];
	uint8_t hash[STORE_HASH];
	char tenant[STORE_NAME];
	char user[STORE_USER]; /* a token for this one user, else empty */
	char name[STORE_TEXT], scopes[STORE_TEXT];
	int64_t created_at, expires_at;
};
STORE_LIST(key);

/* What the sessions that name it are under. 0: nothing said. */
struct store_policy {
	int64_t seq; /* given by the store */
	char tenant[STORE_NAME], name[STORE_NAME]; /* unique together */
	int64_t max_active_per_user;
	uint8_t on_exceed;
	int64_t idle_timeout_ms, max_lifetime_ms;
	char network[STORE_WORD];
	char *limits; /* owned; a JSON object of the engine */
	int64_t created_at;
	char *commands; /* owned; likewise; NULL: nothing said */
};

void store_policy_fini(struct store_policy *p);
STORE_LIST(policy);

/* What was found inside a sandbox of a template, and of which state of it. */
struct store_environment {
	char template[STORE_ID];
	char version[STORE_WORD];
	int64_t captured_at;
	char *data; /* owned; a JSON object of the engine */
};

void store_environment_fini(struct store_environment *v);

/* 0: no limit of this kind. user "" is the tenant itself. */
struct store_quota {
	char tenant[STORE_NAME], user[STORE_USER];
	int64_t sandboxes, memory_bytes, disk_bytes, cpu_ms;
};

struct store_usage {
	int64_t sessions, disk_bytes; /* of all sessions */
	int64_t active, memory_bytes; /* of those in the states asked for */
	int64_t cpu_ms;
};

#endif
