/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: sessions from C, without a daemon. liblodge(3) has an example.
 *
 * Every call blocks, and any number of threads may use one struct lodge at once. Calls return 0, or
 * -1 and then lodge_last_error(), lodge_last_code() and lodge_last_errno() of the same thread tell
 * why; what they return is untouched then.
 *
 * Structs grow at their end in later versions:
 *   - what a caller fills begins with `size`, its sizeof; everything else that is 0 or NULL means
 *     the default. Where such a struct is an argument NULL is allowed, unless it says otherwise.
 *   - what a call returns by a pointer to a pointer is made by the library, together with all it
 *     points to, and goes by one lodge_free(). Texts in it are never NULL; an empty one is "none".
 *     Times are milliseconds since 1970, 0 is "none".
 *
 * Sessions outlive the struct lodge and the process. The library starts a lodge-keeper by
 * posix_spawn and a few threads that take no signals; it never forks, prints or exits. */
#ifndef LODGE_H
#define LODGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lodge;

enum lodge_code {
	LODGE_OK,
	LODGE_INVALID, /* the sentence names the field */
	LODGE_NOT_FOUND, /* with ESTALE: it was destroyed; lodge_tombstone_get() tells more */
	LODGE_CONFLICT, /* not possible in its state, or another version */
	LODGE_DENIED,
	LODGE_LIMIT, /* a quota, or the disk; with ERANGE: output that is not kept any more */
	LODGE_TIMEOUT,
	LODGE_UNAVAILABLE, /* try again. With EAGAIN: no room; lodge_room_get() tells more */
	LODGE_INTERNAL,
};

/* Of the last call in this thread that failed. */
const char *lodge_last_error(void);
enum lodge_code lodge_last_code(void);
int lodge_last_errno(void); /* of the cause, or 0 */
const char *lodge_version(void);

/* Everything that the library returned by a pointer to a pointer, except handles, which have a
 * close of their own. NULL is allowed. */
void lodge_free(void *result);

/* ---- the engine ------------------------------------------------------------------------------ */

struct lodge_options {
	size_t size;
	const char *home; /* absolute; where everything is kept. NULL: what lodge(1) uses */
	const char *tenant; /* whose sessions these are. NULL: "default" */
	const char *actor; /* who did it, in events and causes. NULL: "liblodge" */
	uint32_t max_active; /* live sandboxes. 0: as many as the machine takes */
	uint32_t queue_max; /* callers that may wait for room (64) */
	uint32_t pool; /* sandboxes kept ready */
	uint32_t probe_failures; /* in a row that count as unavailable (3) */
	int64_t idle_ms, idle_max_ms; /* of a session: 30 min; a day */
	int64_t lifetime_ms, lifetime_max_ms; /* of one sandbox: 5 h */
	int64_t extend_ms; /* what an explicit extend adds (20 min) */
	int64_t probe_ms; /* deadline of a probe (15 s) */
	int64_t tombstones_ms, execs_ms, events_ms; /* how long they are kept: 7 days each */
};

/* One at a time per home, whichever process: another is refused with the process id of the first.
 * Takes up what the last one left alive. */
int lodge_open(const struct lodge_options *opts, struct lodge **ret);
/* The sessions and their commands go on. Nobody may be in a call; handles must be closed before.
 * NULL is allowed. */
void lodge_close(struct lodge *l);

struct lodge_room {
	uint32_t active, max; /* live sandboxes now, at most */
	uint32_t waiting; /* callers in the queue */
	uint32_t idle; /* sandboxes that could be hibernated */
	int64_t retry_after_ms; /* worth trying again then */
};
int lodge_room_get(struct lodge *l, struct lodge_room **ret);

/* ---- sessions -------------------------------------------------------------------------------- */

/* A session by its id; or, with id NULL, by one of its keys. Never grows. */
struct lodge_ref {
	const char *id;
	const char *kind; /* of the key; NULL: "key" */
	const char *key;
};

enum lodge_state {
	LODGE_STATE_NONE, /* never had a sandbox, or nothing is left of it */
	LODGE_STATE_PROVISIONING,
	LODGE_STATE_ACTIVE,
	LODGE_STATE_HIBERNATING,
	LODGE_STATE_HIBERNATED,
	LODGE_STATE_RESTORING,
	LODGE_STATE_ARCHIVED,
	LODGE_STATE_FAILED,
	LODGE_STATE_DESTROYING,
};
const char *lodge_state_name(enum lodge_state state); /* "active" ...; "?": there is none */

enum lodge_runtime {
	LODGE_RUNTIME_NONE,
	LODGE_RUNTIME_RESUMABLE,
	LODGE_RUNTIME_LIVE,
};

enum lodge_end { /* what happens when it is idle for too long, or its lifetime is over */
		 LODGE_END_HIBERNATE = 1,
		 LODGE_END_DESTROY,
};

enum lodge_outcome {
	LODGE_CREATED = 1,
	LODGE_REUSED, /* it ran */
	LODGE_RESUMED, /* it slept, or its sandbox was gone; the files are there */
	LODGE_REPLACED, /* the files of an earlier one are not there */
};

enum lodge_source {
	LODGE_SOURCE_NONE,
	LODGE_SOURCE_POOL,
	LODGE_SOURCE_COLD,
	LODGE_SOURCE_RESUME,
	LODGE_SOURCE_FORK,
};

/* Why something is as it is. */
struct lodge_cause {
	const char *code; /* "asked", "idle", "expired", "replaced", "room", "gone", ... */
	const char *text; /* a sentence */
	const char *actor;
	int64_t at;
};

/* The record of a session, as it was when it was asked for. */
struct lodge_session {
	const char *id, *user, *template_name;
	const char *sandbox; /* the live machine */
	const char *snapshot; /* the newest one */
	const char *project, *fragment;
	const char *spec; /* JSON: what differs from the template */
	const char *metadata; /* JSON: the caller's */
	const struct lodge_ref *keys; /* that lead to it */
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
	int64_t memory_bytes, disk_bytes; /* what counts against the quota */
	const struct lodge_cause *cause; /* why it is where it is; NULL: none */

	/* From lodge_enter() and lodge_resume() only, else 0; `cause` then tells why it had to be
	 * resumed or replaced. */
	enum lodge_outcome outcome;
	enum lodge_source source;
	int state_lost; /* not 0: files that were there are not */
	uint64_t ready_us;
};

struct lodge_sessions {
	struct lodge_session **items;
	size_t count;
	int64_t next; /* cursor of the next page, 0 when this is the last */
};

/* 0: as the template says. */
struct lodge_limits {
	size_t size;
	uint64_t memory_bytes, disk_bytes, inodes;
	uint64_t file_bytes; /* largest single file */
	uint64_t output_bytes; /* kept of each stream of one command */
	uint32_t cpu_milli; /* 1000 is one core */
	uint32_t cpu_weight; /* share under contention; 100 is normal */
	uint32_t pids;
	uint32_t open_files; /* per process */
};

enum lodge_demand { /* refuse to start where this cannot be enforced */
		    LODGE_DEMAND_CGROUP = 1 << 0, /* memory, cpu, processes */
		    LODGE_DEMAND_DISK = 1 << 1,
};

struct lodge_want {
	size_t size;
	/* The first that leads somewhere decides; all of them lead to the session afterwards. None:
	 * always a new session. */
	const struct lodge_ref *keys;
	size_t nkeys;

	/* Of a new one; one that is there is left as it is. */
	const char *user; /* its owner */
	const char *template_name; /* NULL: "host" */
	const char *snapshot; /* start from these files */
	const char *project, *fragment; /* names in the record */
	const char *metadata; /* a JSON object */
	const struct lodge_limits *limits;
	const char *const *env; /* NULL-terminated "NAME=VALUE", over the template's */
	const char *run_as, *workdir; /* of commands; NULL: as the template says. A workdir that is
					 missing is made, and is the user's */
	int root; /* not 0: a root inside */
	unsigned demand; /* enum lodge_demand */
	enum lodge_end on_idle, on_expire; /* 0: hibernate */

	/* Of a new one; entering never changes the life of one that is there. */
	int64_t idle_timeout_ms, max_lifetime_ms;

	int must_be_new; /* not 0: LODGE_CONFLICT if a key leads somewhere */
	int asleep; /* not 0: a new one gets no sandbox yet, one that is there is left as it is */
	const char *pin; /* this session or sandbox id, or LODGE_CONFLICT */
	const char *once; /* idempotency key: the same key leads to the same session */
	uint32_t max_active_per_user; /* 0: any number */
	int replace; /* not 0: one too many replaces the oldest, else it is refused */
	int64_t wait_ms; /* for room; 0: not at all */
};

/* Gets or creates it, ready to be used: resumed if it slept. However many callers come at once with
 * the same key, there is one session with one sandbox. */
int lodge_enter(struct lodge *l, const struct lodge_want *want, struct lodge_session **ret);

/* Looking changes nothing. */
int lodge_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret);

struct lodge_filter {
	size_t size;
	const char *user, *project;
	const char *meta_key, *meta_value; /* metadata has this text member */
	uint64_t states; /* bits 1 << enum lodge_state; 0: all */
	int64_t after; /* `next` of the page before */
	uint64_t limit; /* 0: 100 */
};
/* In the order of creation. */
int lodge_list(struct lodge *l, const struct lodge_filter *filter, struct lodge_sessions **ret);

/* 1 only if its sandbox is live now; else 0. */
int lodge_is_valid(struct lodge *l, const struct lodge_ref *ref);

struct lodge_tombstone {
	const char *id, *user; /* of the session that was */
	int64_t created_at;
	const struct lodge_cause *cause; /* by whom, when and why it was destroyed */
};
int lodge_tombstone_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_tombstone **ret);

/* Whether its newest sealed files would survive a power loss: 1 or 0. */
int lodge_durable(struct lodge *l, const struct lodge_ref *ref, int *ret);

struct lodge_stats { /* of the live sandbox */
	uint64_t memory_bytes, memory_peak_bytes, oom_kills;
	uint64_t cpu_us;
	uint64_t pids, pids_denied; /* denied: forks refused by the limit */
	uint64_t disk_bytes; /* UINT64_MAX where it cannot be told */
	int disk_full; /* not 0: nothing more can be written */
};
int lodge_stats_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_stats **ret);

enum lodge_answer {
	LODGE_CONNECTED = 1, /* verified */
	LODGE_UNSURE, /* no answer in time, for now: everything is kept; ask again */
	LODGE_EXPIRED, /* gone; the record says so now */
	LODGE_NO_SANDBOX,
};
struct lodge_probed {
	enum lodge_answer answer;
	const struct lodge_cause *cause; /* NULL: none */
	int64_t expires_at, retry_after_ms;
};
/* Asks the sandbox itself. Never extends a life. deadline_ms 0: the default. */
int lodge_probe(struct lodge *l, const struct lodge_ref *ref, int64_t deadline_ms,
		struct lodge_probed **ret);

/* Everywhere below: if_version is 0, or the version the record must have now, else LODGE_CONFLICT.
 * ret may be NULL; else it is the record afterwards. */

/* Later deadlines by ms (0: the default step), never past its lifetime. */
int lodge_extend(struct lodge *l, const struct lodge_ref *ref, int64_t ms, int64_t if_version,
		 struct lodge_session **ret);
/* Somebody works in it. */
int lodge_activity(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret);

struct lodge_patch { /* 0 or NULL: it stays as it is */
	size_t size;
	int64_t idle_timeout_ms, max_lifetime_ms;
	enum lodge_end on_idle, on_expire;
	const struct lodge_limits *limits; /* in force at once */
	const char *metadata; /* a JSON object in the place of the old one */
	int64_t if_version;
};
int lodge_change(struct lodge *l, const struct lodge_ref *ref, const struct lodge_patch *patch,
		 struct lodge_session **ret);

/* Processes frozen, memory kept. Any use thaws. */
int lodge_pause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		struct lodge_session **ret);
int lodge_unpause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		  struct lodge_session **ret);
/* Files kept, processes ended; of what sleeps already: success. */
int lodge_hibernate(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		    struct lodge_session **ret);
/* Of what runs already: success, LODGE_REUSED. */
int lodge_resume(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		 struct lodge_session **ret);
/* Archived sessions are never resumed nor looked at. One that runs is hibernated first. */
int lodge_archive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		  struct lodge_session **ret);
int lodge_unarchive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		    struct lodge_session **ret);

/* From every state, with its files; snapshots stay. One that is gone already is success. why: a
 * sentence for the tombstone, or NULL; ret may be NULL. */
int lodge_destroy(struct lodge *l, const struct lodge_ref *ref, const char *why,
		  struct lodge_tombstone **ret);

struct lodge_cleaned { /* ids */
	const char *const *destroyed, *const *failed;
	size_t ndestroyed, nfailed;
};
/* Destroys every session of a user, or of the tenant with user NULL. One failure does not stop the
 * rest. ret may be NULL. */
int lodge_cleanup(struct lodge *l, const char *user, struct lodge_cleaned **ret);

/* ---- commands -------------------------------------------------------------------------------- */

/* A call that needs the sandbox of a session resumes one that sleeps. How the last such call of
 * this thread (lodge_run(), lodge_exec_start(), lodge_file_*()) found it; LODGE_REPLACED: files
 * that were there are not. 0: it did not come so far. */
enum lodge_outcome lodge_last_outcome(void);

struct lodge_command { /* never NULL */
	size_t size;
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text */
	const char *const *env; /* NULL-terminated "NAME=VALUE", over the session's */
	const char *cwd, *user; /* NULL: the session's */
	const void *input; /* standard input, with lodge_run() only; NULL: none */
	size_t input_len;
	const char *once; /* idempotency key: the same key leads to the same command */
	uint64_t output_bytes; /* kept of each stream; 0: the session's limit, or 1 MiB */
	uint32_t timeout_ms; /* 0: none; ends everything the command started */
	uint32_t rows, cols; /* of the terminal */
	int pty; /* not 0: on a terminal; all output is LODGE_STDOUT */
	int merge; /* not 0: standard error goes where standard output goes */
	int login; /* not 0: a login shell */
	int no_resume; /* not 0: LODGE_CONFLICT if the session sleeps */

	/* With lodge_exec_start() only. */
	int background; /* not 0: nobody waits for it; only told in the record */
	int stdin_open; /* not 0: lodge_exec_write() feeds it */
	int hold; /* not 0: a full log makes the command wait for lodge_exec_consumed() */
};

enum lodge_hit { /* limits a command met */
		 LODGE_HIT_TIME = 1 << 0,
		 LODGE_HIT_MEMORY = 1 << 1,
		 LODGE_HIT_PIDS = 1 << 2,
		 LODGE_HIT_OUTPUT = 1 << 3,
		 LODGE_HIT_DISK = 1 << 4,
		 LODGE_HIT_FILE = 1 << 5,
};

struct lodge_result {
	const char *exec_id;
	int code; /* exit status, or -1 when killed by a signal */
	int signal; /* 0 when it exited */
	unsigned hits; /* enum lodge_hit */
	char *out, *err; /* NUL-terminated; any bytes */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* what the command wrote in all */
	uint64_t duration_us, cpu_us, max_rss_bytes;
	int status; /* as a shell tells it: the code, 128 + signal; -1: nobody saw its end */
};

/* Runs it to its end. A command that fails is a result; -1 only when there is none. */
int lodge_run(struct lodge *l, const struct lodge_ref *ref, const struct lodge_command *cmd,
	      struct lodge_result **ret);

/* A handle of one command. The command's life has nothing to do with it, nor with the process: it
 * goes on when everybody is gone, and whoever opens it by its id later finds its output. */
struct lodge_exec;

/* Returns when the command runs. */
int lodge_exec_start(struct lodge *l, const struct lodge_ref *ref, const struct lodge_command *cmd,
		     struct lodge_exec **ret);
/* One that was started before, whenever and by whom. */
int lodge_exec_open(struct lodge *l, const char *exec_id, struct lodge_exec **ret);
/* The command goes on. NULL is allowed. */
void lodge_exec_close(struct lodge_exec *x);
const char *lodge_exec_id(const struct lodge_exec *x); /* good until lodge_exec_close() */

enum lodge_exec_state {
	LODGE_EXEC_RUNNING,
	LODGE_EXEC_EXITED,
	LODGE_EXEC_KILLED, /* by a signal, a timeout, or with its sandbox */
	LODGE_EXEC_LOST, /* nobody knows how it ended */
};

struct lodge_exec_info {
	const char *id, *session;
	const char *command; /* JSON: an array, or bash text as a string */
	enum lodge_exec_state state;
	int background, timed_out, oom_killed, truncated;
	int exit_code, signal; /* as in struct lodge_result */
	int64_t incarnation; /* of the session's sandbox */
	int64_t started_at, ended_at;
	int64_t stdout_bytes, stderr_bytes; /* what it wrote in all */
	int64_t cpu_ms, max_rss_bytes;
};
int lodge_exec_get(struct lodge_exec *x, struct lodge_exec_info **ret);

struct lodge_execs {
	struct lodge_exec_info **items;
	size_t count;
	int64_t next;
};
/* Of one session, in the order in which they were started; also those that ended long ago. limit
 * 0: 100. */
int lodge_exec_list(struct lodge *l, const struct lodge_ref *ref, int64_t after, uint32_t limit,
		    struct lodge_execs **ret);

/* Until it ended; timeout_ms < 0: as long as it takes. LODGE_TIMEOUT leaves it running. */
int lodge_exec_wait(struct lodge_exec *x, int64_t timeout_ms);
int lodge_exec_ended(struct lodge_exec *x); /* 1 or 0 */

enum lodge_stream { LODGE_STDOUT, LODGE_STDERR };

/* [*ret_start, *ret_end) of the stream can be read now. */
int lodge_exec_range(struct lodge_exec *x, enum lodge_stream s, uint64_t *ret_start,
		     uint64_t *ret_end);
/* Bytes from `offset` on, waiting up to wait_ms for the first. *ret 0: none yet, or no more when
 * lodge_exec_ended(). */
int lodge_exec_read(struct lodge_exec *x, enum lodge_stream s, uint64_t offset, void *buf,
		    size_t size, int64_t wait_ms, size_t *ret);
/* Waits until there is more than these offsets in either stream: 1. 0: the time is over, or it
 * ended without more. */
int lodge_exec_wait_output(struct lodge_exec *x, uint64_t out, uint64_t err, int64_t wait_ms);
/* With `hold`: what lies before these offsets is not needed any more. */
int lodge_exec_consumed(struct lodge_exec *x, uint64_t out, uint64_t err);

/* Returns when the command's pipe took all of it. eof not 0: and that was all. LODGE_CONFLICT: the
 * command ended meanwhile, or does not read any more. */
int lodge_exec_write(struct lodge_exec *x, const void *data, size_t len, int eof);

enum lodge_scope {
	LODGE_TO_GROUP, /* its process group */
	LODGE_TO_PROCESS,
	LODGE_TO_TREE, /* everything it started, wherever it went */
};
int lodge_exec_signal(struct lodge_exec *x, int signo, enum lodge_scope scope);
int lodge_exec_resize(struct lodge_exec *x, uint32_t rows, uint32_t cols);

/* ---- files ----------------------------------------------------------------------------------- */

/* Paths are those inside, opened with the rights of the session's user; relative ones start where
 * its commands start. mode 0: 0644, of directories 0755. */

struct lodge_bytes {
	char *data; /* NUL-terminated; any bytes */
	size_t len;
};
/* More than max bytes is LODGE_LIMIT. */
int lodge_file_read(struct lodge *l, const struct lodge_ref *ref, const char *path, size_t max,
		    struct lodge_bytes **ret);
/* All or nothing; missing directories are made. */
int lodge_file_write(struct lodge *l, const struct lodge_ref *ref, const char *path,
		     const void *data, size_t len, mode_t mode);
int lodge_file_append(struct lodge *l, const struct lodge_ref *ref, const char *path,
		      const void *data, size_t len, mode_t mode);

struct lodge_file {
	const char *path; /* in a list: relative to the directory; any bytes but NUL */
	const char *target; /* of a symbolic link */
	uint32_t mode; /* st_mode: type and permissions */
	uint32_t nlink, uid, gid;
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
};
/* follow 0: of a symbolic link itself. */
int lodge_file_stat(struct lodge *l, const struct lodge_ref *ref, const char *path, int follow,
		    struct lodge_file **ret);

struct lodge_files {
	struct lodge_file **items;
	size_t count;
	uint64_t total, total_bytes; /* from lodge_thread_files(): with those that are left out */
};
/* Sorted by name, depth first; depth 1: only the directory itself. More than max is LODGE_LIMIT. */
int lodge_file_list(struct lodge *l, const struct lodge_ref *ref, const char *path, uint32_t depth,
		    size_t max, struct lodge_files **ret);

/* parents not 0: makes missing ones, and one that is there is fine. */
int lodge_file_mkdir(struct lodge *l, const struct lodge_ref *ref, const char *path, int parents,
		     mode_t mode);
/* replace 0: LODGE_CONFLICT if there is something at `to`. */
int lodge_file_rename(struct lodge *l, const struct lodge_ref *ref, const char *from,
		      const char *to, int replace);
/* A file or an empty directory. */
int lodge_file_remove(struct lodge *l, const struct lodge_ref *ref, const char *path);
/* Whatever it is; nothing there is success. */
int lodge_file_remove_tree(struct lodge *l, const struct lodge_ref *ref, const char *path);
int lodge_file_symlink(struct lodge *l, const struct lodge_ref *ref, const char *target,
		       const char *path);
int lodge_file_chmod(struct lodge *l, const struct lodge_ref *ref, const char *path, mode_t mode);

/* A tar of the directory's content into `fd`; and from `fd` into the directory. */
int lodge_file_tar_out(struct lodge *l, const struct lodge_ref *ref, const char *path, int fd);
int lodge_file_tar_in(struct lodge *l, const struct lodge_ref *ref, const char *path, int fd);

/* ---- snapshots ------------------------------------------------------------------------------- */

struct lodge_snapshot {
	const char *id, *name;
	const char *session; /* none: it came by lodge_snapshot_import() */
	int64_t generation, bytes, created_at;
};

struct lodge_snapshots {
	struct lodge_snapshot **items;
	size_t count;
	int64_t next;
};

/* name may be NULL. stop not 0: the sandbox is stopped for it and resumed afterwards, instead of
 * copying from the running one. */
int lodge_snapshot_take(struct lodge *l, const struct lodge_ref *ref, const char *name, int stop,
			struct lodge_snapshot **ret);
int lodge_snapshot_get(struct lodge *l, const char *id, struct lodge_snapshot **ret);
/* Oldest first. ref NULL: all of the tenant. limit 0: 100. */
int lodge_snapshot_list(struct lodge *l, const struct lodge_ref *ref, int64_t after, uint32_t limit,
			struct lodge_snapshots **ret);
int lodge_snapshot_remove(struct lodge *l, const char *id);
/* As .tar.zst into a file or pipe; and back, as a snapshot on a template. name may be NULL. */
int lodge_snapshot_export(struct lodge *l, const char *id, int fd);
int lodge_snapshot_import(struct lodge *l, const char *template_name, const char *name, int fd,
			  struct lodge_snapshot **ret);

/* `count` new sessions with the files of this one: of a snapshot of it or, with NULL, of now. keys:
 * NULL, or one for each. All or none. */
int lodge_fork(struct lodge *l, const struct lodge_ref *ref, const char *snapshot, uint32_t count,
	       const struct lodge_ref *keys, struct lodge_sessions **ret);
/* Back to one of its snapshots; what runs is ended and resumed from there. ret may be NULL. */
int lodge_rollback(struct lodge *l, const struct lodge_ref *ref, const char *snapshot,
		   int64_t if_version, struct lodge_session **ret);

/* ---- what happened, and what may be used ----------------------------------------------------- */

struct lodge_event {
	int64_t id; /* rises, never used twice */
	const char *session, *kind;
	int64_t version; /* of the session */
	const struct lodge_cause *cause; /* its `at` is the event's time */
	const char *data; /* JSON */
};

struct lodge_events {
	struct lodge_event **items;
	size_t count;
	int64_t next; /* 0: these were all */
};

/* After the event with the id `since` (0: from the beginning), in order; of one session by its id,
 * or NULL: all of the tenant. limit 0: 100. */
int lodge_events_since(struct lodge *l, int64_t since, const char *session, uint32_t limit,
		       struct lodge_events **ret);

struct lodge_quota { /* 0: no limit of this kind */
	size_t size;
	int64_t sandboxes, memory_bytes, disk_bytes, cpu_ms;
};

struct lodge_usage {
	const struct lodge_quota *quota; /* what was set */
	int64_t sessions, disk_bytes; /* of all sessions */
	int64_t active, memory_bytes; /* of those with a sandbox */
	int64_t cpu_ms;
};

/* Of one user, or of the tenant itself with user NULL. */
int lodge_quota_set(struct lodge *l, const char *user, const struct lodge_quota *quota);
int lodge_quota_get(struct lodge *l, const char *user, struct lodge_usage **ret);

#ifdef __cplusplus
}
#endif

#include <lodge_thread.h>

#endif
