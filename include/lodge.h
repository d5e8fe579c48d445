/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: sessions from C, without a daemon. liblodge(3) has an example.
 *
 * Every call blocks, and any number of threads may use one struct lodge at once. Calls return 0, or
 * -1: then lodge_last_error(), lodge_last_code() and lodge_last_errno() of the same thread say why,
 * and the results are unchanged. Structs grow at their end in later versions:
 * - a struct that the caller fills begins with `size`, its sizeof. 0 or NULL in other members
 *   means the default. NULL instead of such a struct is allowed unless a comment forbids it.
 * - one lodge_free() frees what a call returns through a pointer to a pointer, with all it points
 *   to. Texts in it are never NULL; "" means none. Times are milliseconds since 1970, 0: none.
 *
 * Sessions outlive the struct lodge and the process. The library starts a lodge-keeper with
 * posix_spawn and a few threads that block all signals; it never forks, prints or exits. */
#ifndef LODGE_H
#define LODGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of version 0.1 go on working for one release. */
#define LODGE_OLD_NAME(now) __attribute__((deprecated("now called " now)))

struct lodge;

enum lodge_code {
	LODGE_OK,
	LODGE_INVALID, /* the message names the field */
	LODGE_NOT_FOUND, /* ESTALE: see lodge_tombstone_get(); EOWNERDEAD: the sandbox ended */
	LODGE_CONFLICT, /* not possible in this state, or another version */
	LODGE_DENIED,
	LODGE_LIMIT, /* a quota, or a full disk; with ERANGE: output that is no longer retained */
	LODGE_TIMEOUT,
	LODGE_UNAVAILABLE, /* try again; with EAGAIN: no capacity, see lodge_room_get() */
	LODGE_INTERNAL,
};

/* Of the last failed call in this thread. */
const char *lodge_last_error(void);
enum lodge_code lodge_last_code(void);
int lodge_last_errno(void); /* errno of the cause, or 0 */
const char *lodge_version(void);

/* Frees any object that the library returned through a pointer to a pointer, except handles, which
 * have their own close function. Accepts NULL. */
void lodge_free(void *result);

/* ---- the engine ------------------------------------------------------------------------------ */

struct lodge_options {
	size_t size;
	const char *home; /* absolute path of the data directory. NULL: the one lodge(1) uses */
	const char *tenant; /* owner of the sessions. NULL: "default" */
	const char *actor; /* named in events and causes. NULL: "liblodge" */
	uint32_t max_active; /* running sandboxes (one per 64 MiB of memory); UINT32_MAX: any */
	uint32_t queue_max; /* callers that may wait for capacity (64) */
	uint32_t pool; /* sandboxes started in advance, at most 1024 */
	uint32_t probe_failures; /* consecutive failures that count as unavailable (3) */
	/* a time above its maximum is LODGE_INVALID */
	int64_t idle_ms, idle_max_ms; /* of a session: 30 min; 1 day */
	int64_t lifetime_ms, lifetime_max_ms; /* of one sandbox: 5 h; extended at most to 5 h */
	int64_t extend_ms; /* added by an explicit extend (20 min) */
	int64_t probe_ms; /* deadline of a probe (15 s) */
	int64_t tombstones_ms, execs_ms, events_ms; /* retention: 7 days each */
	int64_t delete_after_ms; /* of hibernated sessions that set none; 0: never deleted */
};

/* Opens the data directory. Only one process at a time can open it; the error names the other
 * process. Adopts the sandboxes that an earlier process left running. */
int lodge_open(const struct lodge_options *opts, struct lodge **ret);
/* Closes the engine. Sessions and their commands keep running. No thread may be in a call, and all
 * handles must be closed. Accepts NULL. */
void lodge_close(struct lodge *l);

struct lodge_room {
	uint32_t active, max; /* running sandboxes now, and their maximum */
	uint32_t waiting; /* callers in the queue */
	uint32_t idle; /* sandboxes that could be hibernated */
	int64_t retry_after_ms; /* when to try again */
};
int lodge_room_get(struct lodge *l, struct lodge_room **ret);

/* ---- sessions -------------------------------------------------------------------------------- */

/* Names a session by its id or, with id NULL, by one of its keys. This struct never grows. */
struct lodge_ref {
	const char *id; /* of the session, or of its present sandbox */
	const char *kind; /* kind of the key; NULL: "key" */
	const char *key;
};

enum lodge_state {
	LODGE_STATE_NONE, /* never had a sandbox, or lost it with its files */
	LODGE_STATE_PROVISIONING,
	LODGE_STATE_ACTIVE,
	LODGE_STATE_HIBERNATING,
	LODGE_STATE_HIBERNATED,
	LODGE_STATE_RESTORING,
	LODGE_STATE_ARCHIVED,
	LODGE_STATE_FAILED,
	LODGE_STATE_DESTROYING,
};
const char *lodge_state_name(enum lodge_state state); /* "active" ...; "?" for an unknown state */

enum lodge_runtime {
	LODGE_RUNTIME_NONE,
	LODGE_RUNTIME_RESUMABLE,
	LODGE_RUNTIME_LIVE,
};

enum lodge_end { /* action at the end of the idle timeout or lifetime */
		 LODGE_END_HIBERNATE = 1,
		 LODGE_END_DESTROY,
};

enum lodge_outcome {
	LODGE_CREATED = 1,
	LODGE_REUSED, /* it was running */
	LODGE_RESUMED, /* it was hibernated, or its sandbox had ended; its files are kept */
	LODGE_REPLACED, /* the files of an earlier session are lost */
};

enum lodge_source {
	LODGE_SOURCE_NONE,
	LODGE_SOURCE_POOL,
	LODGE_SOURCE_COLD,
	LODGE_SOURCE_RESUME,
	LODGE_SOURCE_FORK,
};

/* Why an object is in its state. */
struct lodge_cause {
	const char *code; /* "asked", "idle", "expired", "replaced", "room", "gone", ... */
	const char *text; /* a message */
	const char *actor;
	int64_t at;
};

/* The record of a session at the time of the call. */
struct lodge_session {
	const char *id, *user, *template_name;
	const char *sandbox; /* the running sandbox */
	const char *snapshot; /* the newest snapshot */
	const char *project, *fragment;
	const char *spec; /* JSON: differences from the template */
	const char *metadata; /* JSON set by the caller */
	const struct lodge_ref *keys; /* the keys of the session */
	size_t nkeys;
	enum lodge_state state;
	enum lodge_runtime runtime;
	enum lodge_end on_idle, on_expire;
	int paused;
	int64_t version; /* raised by every write */
	int64_t generation; /* of its files */
	int64_t incarnation; /* of its sandbox */
	int64_t created_at, started_at, last_activity_at;
	int64_t idle_timeout_ms, max_lifetime_ms;
	int64_t hibernate_at, expires_at;
	int64_t memory_bytes, disk_bytes; /* count against the quota */
	const struct lodge_cause *cause; /* why it is in its state; NULL: none */

	/* Set by lodge_enter() and lodge_resume(), else 0; `cause` then says why the session was
	 * resumed or replaced. */
	enum lodge_outcome outcome;
	enum lodge_source source;
	int state_lost; /* not 0: earlier files are lost */
	uint64_t ready_us;

	int64_t lifetime_ms; /* of a sandbox until its first expiry */
	int64_t delete_after_ms; /* once hibernated; 0: never */
	int64_t hibernated_at, delete_at; /* 0 unless hibernated; delete_at 0: never */
	/* Names of requested fields, as "template, limits.pids": ignored, because the session
	 * exists with other values; adjusted to a bound (threads), or lowered with another field
	 * (lodge_change()). */
	const char *ignored, *adjusted;
	/* Set by lodge_extend(), else 0: by how much expires_at moved, and whether it can move no
	 * further. */
	int64_t extended_by_ms;
	int at_maximum;
	const char *last_death; /* JSON: how its last sandbox ended; "" if none did */
};

struct lodge_sessions {
	struct lodge_session **items;
	size_t count;
	int64_t next; /* cursor of the next page, 0 after the last */
};

/* 0: the template's value. LODGE_CONFLICT if one cannot be enforced; on disk, inodes never is. */
struct lodge_limits {
	size_t size;
	uint64_t memory_bytes, disk_bytes, inodes;
	uint64_t file_bytes; /* largest single file */
	uint64_t output_bytes; /* retained of each output stream of a command */
	uint32_t cpu_milli; /* 1000 is one core */
	uint32_t cpu_weight; /* share under contention; 100 is the default */
	uint32_t pids;
	uint32_t open_files; /* per process */
};

enum lodge_demand { /* fail if this limit cannot be enforced, even if it is the default */
		    LODGE_DEMAND_CGROUP = 1 << 0, /* memory, cpu, processes */
		    LODGE_DEMAND_DISK = 1 << 1,
};

struct lodge_want {
	size_t size;
	/* The first key that has a session selects it; afterwards all keys belong to that session.
	 * Without keys a new session is always created. */
	const struct lodge_ref *keys;
	size_t nkeys;

	/* For a new session; an existing session is not changed. */
	const char *user; /* its end user */
	const char *template_name; /* NULL: "host" */
	const char *snapshot; /* snapshot to start from */
	const char *project, *fragment; /* stored in the record */
	const char *metadata; /* a JSON object */
	const struct lodge_limits *limits;
	const char *const *env; /* NULL-terminated "NAME=VALUE", over the template's */
	const char *run_as, *workdir; /* of commands; NULL: the template's. A missing workdir is
					 created for the user */
	int root; /* not 0: commands may run as root in the sandbox */
	unsigned demand; /* enum lodge_demand */
	enum lodge_end on_idle, on_expire; /* 0: hibernate */

	/* For a new session; entering never changes the times of an existing one. LODGE_INVALID
	 * beyond idle_max_ms and lifetime_max_ms. */
	int64_t idle_timeout_ms, max_lifetime_ms;

	int must_be_new; /* not 0: LODGE_CONFLICT if a key has a session */
	int asleep; /* not 0: do not start or resume a sandbox */
	const char *pin; /* required session or sandbox id, else LODGE_CONFLICT */
	__extension__ union { /* calls with the same key return the same session */
		const char *idempotency_key;
		const char *once LODGE_OLD_NAME("idempotency_key");
	};
	uint32_t max_active_per_user; /* 0: no maximum */
	int replace; /* not 0: one above the maximum replaces the oldest session; 0: it fails */
	int64_t wait_ms; /* for capacity; 0: do not wait */
	int64_t lifetime_ms; /* until the first expiry, at most max_lifetime_ms */
	int64_t delete_after_ms; /* once hibernated; 0: the default, -1: never */
};

/* Gets or creates a session with a running sandbox; a hibernated one is resumed. Concurrent calls
 * with the same key share one session with one sandbox. */
int lodge_enter(struct lodge *l, const struct lodge_want *want, struct lodge_session **ret);

/* Reads change nothing. */
int lodge_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret);

struct lodge_filter {
	size_t size;
	const char *user, *project;
	const char *meta_key, *meta_value; /* metadata has this text member */
	uint64_t states; /* bits 1 << enum lodge_state; 0: all */
	int64_t after; /* `next` of the previous page */
	uint64_t limit; /* 0: 100 */
};
/* Lists sessions in order of creation. */
int lodge_list(struct lodge *l, const struct lodge_filter *filter, struct lodge_sessions **ret);

/* 1 if its sandbox is running now, else 0. */
int lodge_is_valid(struct lodge *l, const struct lodge_ref *ref);

struct lodge_tombstone {
	const char *id, *user; /* of the destroyed session */
	int64_t created_at;
	const struct lodge_cause *cause; /* when, why and by which actor it was destroyed */
};
int lodge_tombstone_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_tombstone **ret);

/* 1 if its newest sealed files would survive a power loss, else 0. */
int lodge_durable(struct lodge *l, const struct lodge_ref *ref, int *ret);

struct lodge_stats { /* of the running sandbox */
	uint64_t memory_bytes, memory_peak_bytes, oom_kills;
	uint64_t cpu_us;
	uint64_t pids, pids_denied; /* of the guest; denied: forks that the limit rejected */
	uint64_t disk_bytes; /* deleted files count up to 30 s longer; UINT64_MAX if unknown */
	int disk_full; /* not 0: nothing more can be written */
	/* of the output that lodge keeps of running commands; memory_bytes does not count it */
	uint64_t output_memory_bytes;
};
int lodge_stats_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_stats **ret);

struct lodge_limits_state { /* of the session, with or without a sandbox */
	const struct lodge_limits *limits; /* those that apply; cpu_milli 0: none */
	/* JSON, as limits_not_enforced of the HTTP API: those that this host does not enforce, as
	 * [{"limit": "inodes", "enforced": false, "reason": "..."}]. On disk inodes never is. */
	const char *not_enforced;
};
int lodge_limits_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_limits_state **ret);

enum lodge_answer {
	LODGE_CONNECTED = 1, /* verified */
	LODGE_UNSURE, /* no answer in time: nothing is changed; try again */
	LODGE_EXPIRED, /* ended; the record is updated */
	LODGE_NO_SANDBOX,
};
struct lodge_probed {
	enum lodge_answer answer;
	const struct lodge_cause *cause; /* NULL: none */
	int64_t expires_at, retry_after_ms;
};
/* Checks whether the sandbox answers. Never extends its deadlines. deadline_ms 0: the default. */
int lodge_probe(struct lodge *l, const struct lodge_ref *ref, int64_t deadline_ms,
		struct lodge_probed **ret);

/* In all calls below: if_version is 0, or the required version of the record, else LODGE_CONFLICT.
 * ret may be NULL; else *ret is the record after the call. */

/* Postpones expires_at by ms (0: the default), at most to max_lifetime_ms after started_at, and
 * hibernate_at to ms from now. The record says what was done: extended_by_ms, at_maximum. A sandbox
 * that resumes the session has lifetime_ms again. */
int lodge_extend(struct lodge *l, const struct lodge_ref *ref, int64_t ms, int64_t if_version,
		 struct lodge_session **ret);
/* Reports activity: restarts the idle timeout. */
int lodge_activity(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret);

struct lodge_patch { /* 0 or NULL: unchanged */
	size_t size;
	int64_t idle_timeout_ms, max_lifetime_ms;
	enum lodge_end on_idle, on_expire;
	const struct lodge_limits *limits; /* effective at once */
	const char *metadata; /* a JSON object that replaces the old one */
	int64_t if_version;
	int64_t lifetime_ms; /* at most max_lifetime_ms, which lowers it too */
	int64_t delete_after_ms; /* -1: never */
};
int lodge_change(struct lodge *l, const struct lodge_ref *ref, const struct lodge_patch *patch,
		 struct lodge_session **ret);

/* Freezes the processes and keeps their memory. Any use unpauses. */
int lodge_pause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		struct lodge_session **ret);
int lodge_unpause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		  struct lodge_session **ret);
/* Keeps the files and ends the processes. Succeeds if it is hibernated already. */
int lodge_hibernate(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		    struct lodge_session **ret);
/* Starts a sandbox for a hibernated session. LODGE_REUSED if it is running already. */
int lodge_resume(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		 struct lodge_session **ret);
/* Archived sessions are neither resumed nor checked. A running session is hibernated first.
 */
int lodge_archive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		  struct lodge_session **ret);
int lodge_unarchive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		    struct lodge_session **ret);

/* Destroys a session in any state and its files; snapshots stay. Succeeds if it is destroyed
 * already. why: a message for the tombstone, or NULL; ret may be NULL. */
int lodge_destroy(struct lodge *l, const struct lodge_ref *ref, const char *why,
		  struct lodge_tombstone **ret);

struct lodge_cleaned { /* ids */
	const char *const *destroyed, *const *failed;
	size_t ndestroyed, nfailed;
};
/* Destroys all sessions of a user, or of the tenant with user NULL. Continues after failures. ret
 * may be NULL. */
int lodge_cleanup(struct lodge *l, const char *user, struct lodge_cleaned **ret);

/* ---- events and quotas ----------------------------------------------------------------------- */

struct lodge_event {
	int64_t id; /* rises and is never reused */
	const char *session, *kind;
	int64_t version; /* of the session */
	const struct lodge_cause *cause; /* its `at` is the time of the event */
	const char *data, *key, *user, *exec; /* data: JSON; of the session; or "" */
};

struct lodge_events {
	struct lodge_event **items;
	size_t count;
	int64_t next; /* 0: no more */
};

/* Lists events after the id `since` (0: from the beginning), in order, of one session by its id or,
 * with NULL, of the tenant. limit 0: 100. */
int lodge_events_since(struct lodge *l, int64_t since, const char *session, uint32_t limit,
		       struct lodge_events **ret);

struct lodge_quota { /* 0: no limit */
	size_t size;
	int64_t sandboxes, memory_bytes, disk_bytes, cpu_ms;
};

struct lodge_usage {
	const struct lodge_quota *quota; /* the limits that were set */
	int64_t sessions, disk_bytes; /* of all sessions */
	int64_t active, memory_bytes; /* of sessions with a sandbox */
	int64_t cpu_ms;
};

/* Of one user or, with user NULL, of the tenant itself. */
int lodge_quota_set(struct lodge *l, const char *user, const struct lodge_quota *quota);
int lodge_quota_get(struct lodge *l, const char *user, struct lodge_usage **ret);

#ifdef __cplusplus
}
#endif

#include <lodge_exec.h>
#include <lodge_file.h>
#include <lodge_project.h>
#include <lodge_snapshot.h>
#include <lodge_thread.h>
#endif
