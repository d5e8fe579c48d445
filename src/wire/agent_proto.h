/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the engine and lodge-init: SOCK_SEQPACKET, a struct agent_hdr, a fixed struct
 * per type, then packed strings or bytes. Every request gets exactly one reply with the same `req`
 * (AGENT_CONSUMED: none; AGENT_LIST: many AGENT_PROC, then AGENT_OK). Events carry req 0.
 *
 * Both sides treat the other as hostile: they check lengths before use and refuse unknown types.
 * Output never travels here: lodge-init writes it into the log files that the engine passed with
 * AGENT_EXEC (see agent_log below) and only reports how far they reach. */
#ifndef LODGE_WIRE_AGENT_PROTO_H
#define LODGE_WIRE_AGENT_PROTO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_VERSION 1u

enum {
	AGENT_MSG_MAX = 192 * 1024, /* a whole message; argv, environment and text must fit */
	AGENT_DATA_MAX = 64 * 1024, /* stdin bytes in one AGENT_STDIN */
	AGENT_PATH_MAX = 4096,
	AGENT_EXECS_MAX = 512, /* records kept, running and finished */
	AGENT_CONNS_MAX = 16,
	AGENT_FDS_MAX = 4,
	AGENT_REPLY_FDS = 2,
	AGENT_PAGE = 4096, /* the ring of a log is a multiple of it */
	AGENT_LANDLOCK_DIRS = 32,
};
#define AGENT_LOG_MAX (64ull << 20) /* largest ring of a new log */
#define AGENT_LOG_OLD_MAX (1ull << 40) /* of a log that an older engine made */
/* Rings beyond output_pages, for commands of lodge itself: probes. */
#define AGENT_OUTPUT_SPARE (1ull << 20)

/* Ids of commands and file jobs. The engine's main connection counts up from 1 and continues above
 * agent_hello.last_exec. Every other connection that starts something takes a random range of its
 * own from here on, (1 .. 2^31-1) << 32, so that ids of two connections never collide. */
#define AGENT_SIDE_EXEC (1ull << 32)

/* One row per message. Columns: name, handler, wire number, fixed part, tail, strings in the tail
 * (0: the fixed part says how many), fewest and most descriptors, check of the content.
 * lodge-init builds its dispatch table from the rows, so a request without a handler does not
 * compile. Numbers are part of the protocol: never change or reuse one. */

/* clang-format off */
/* keeper -> lodge-init, once, before anything else is accepted; req 0: no reply */
#define AGENT_BIND_ROW(X) \
	X(BIND, bind, 1, sizeof(struct agent_bind), NONE, 0, 0, 0, bind)        /* -> OK */

/* engine -> lodge-init */
#define AGENT_PROCESS_REQUESTS(X) \
	X(HELLO, hello, 2, 0, NONE, 0, 0, 0, none)                              /* -> HELLOR */ \
	/* Start a command. fds: log of stdout[, of stderr] -> STARTED */ \
	X(EXEC, exec, 3, sizeof(struct agent_exec), STRINGS, 0, 1, 2, exec) \
	/* Keep one bash started, with this environment, directory and user, for the next AGENT_BASH \
	 * that asks for the same -> OK */ \
	X(SPARE_SHELL, spare_shell, 4, sizeof(struct agent_exec), STRINGS, 0, 0, 0, spare_shell) \
	/* -> OK once the command's pipe took all bytes. Without bytes: OK once it took what a closed \
	 * connection left queued */ \
	X(STDIN, stdin, 5, sizeof(struct agent_stdin), BYTES, 0, 0, 0, stdin) \
	X(SIGNAL, signal, 6, sizeof(struct agent_signal), NONE, 0, 0, 0, signal) /* -> OK */ \
	X(RESIZE, resize, 7, sizeof(struct agent_resize), NONE, 0, 0, 0, resize) /* -> OK */ \
	/* From now on this connection gets the events of the exec, and the log keeps what this \
	 * connection has not consumed -> OK */ \
	X(ATTACH, attach, 8, sizeof(struct agent_offsets), NONE, 0, 0, 0, none) \
	X(DETACH, detach, 9, sizeof(struct agent_ref), NONE, 0, 0, 0, none)     /* -> OK */ \
	X(CONSUMED, consumed, 10, sizeof(struct agent_offsets), NONE, 0, 0, 0, none) /* no reply */ \
	X(LIST, list, 11, 0, NONE, 0, 0, 0, none)                               /* -> PROC..., OK */ \
	X(STATUS, status, 12, sizeof(struct agent_ref), NONE, 0, 0, 0, none)    /* -> PROC */ \
	/* Drop the record of a finished command -> OK */ \
	X(FORGET, forget, 13, sizeof(struct agent_ref), NONE, 0, 0, 0, none) \
	/* fsync, rename over the path, fsync the directory -> OK. The engine syncs what it wrote \
	 * first, so that lodge-init does not block */ \
	X(COMMIT, commit, 16, sizeof(struct agent_token), NONE, 0, 0, 0, none) \
	X(ABORT, abort, 17, sizeof(struct agent_token), NONE, 0, 0, 0, none)    /* -> OK */ \
	/* A long file operation in a process of its own -> STARTED. This connection is attached to \
	 * it and gets its EXIT */ \
	X(JOB, job, 24, sizeof(struct agent_job), STRINGS, 2, 0, 1, job) \
	X(LOGS, logs, 25, sizeof(struct agent_ref), NONE, 0, 0, 0, none)        /* -> LOGR */ \
	/* When the sandbox ends by itself if no engine is connected then -> OK */ \
	X(DEADLINES, deadlines, 26, sizeof(struct agent_deadlines), NONE, 0, 0, 0, none) \
	/* Of commands that start from now on, instead of those of BIND -> OK */ \
	X(LIMITS, limits, 27, sizeof(struct agent_limits), NONE, 0, 0, 0, none)

/* Short file operations: struct agent_file, then user NUL path NUL [path NUL] */
#define AGENT_FILE_REQUESTS(X) \
	/* -> FD with a descriptor of a regular file or a directory, of nothing else */ \
	X(OPEN, open, 14, sizeof(struct agent_file), STRINGS, 2, 0, 0, file) \
	/* -> FD with a token and a descriptor; the file becomes `path` at COMMIT */ \
	X(TEMP, temp, 15, sizeof(struct agent_file), STRINGS, 2, 0, 0, file) \
	X(STAT, stat, 18, sizeof(struct agent_file), STRINGS, 2, 0, 0, file)    /* -> STATR */ \
	X(MKDIR, mkdir, 19, sizeof(struct agent_file), STRINGS, 2, 0, 0, file)  /* -> OK */ \
	X(RENAME, rename, 20, sizeof(struct agent_file), STRINGS, 3, 0, 0, file) /* from, to -> OK */ \
	/* A file or an empty directory -> OK */ \
	X(REMOVE, remove, 21, sizeof(struct agent_file), STRINGS, 2, 0, 0, file) \
	X(SYMLINK, symlink, 22, sizeof(struct agent_file), STRINGS, 3, 0, 0, file) /* target, path -> OK */ \
	X(CHMOD, chmod, 23, sizeof(struct agent_file), STRINGS, 2, 0, 0, file)  /* -> OK */

#define AGENT_REQUESTS(X) AGENT_BIND_ROW(X) AGENT_PROCESS_REQUESTS(X) AGENT_FILE_REQUESTS(X)

/* lodge-init -> engine: replies, and two events to attached connections */
#define AGENT_REPLIES(X) \
	X(OK, ok, 64, 0, NONE, 0, 0, 0, none) \
	X(ERROR, error, 65, sizeof(struct agent_error), MESSAGE, 0, 0, 0, none) \
	X(STARTED, started, 66, sizeof(struct agent_started), NONE, 0, 0, 0, none) \
	X(PROC, proc, 67, sizeof(struct agent_proc), STRINGS, 0, 0, 0, proc) \
	X(FD, fd, 68, sizeof(struct agent_token), NONE, 0, 1, 1, none) \
	X(STATR, statr, 69, sizeof(struct agent_stat), BYTES, 0, 0, 0, statr)   /* link target */ \
	X(HELLOR, hellor, 70, sizeof(struct agent_hello), NONE, 0, 0, 0, hellor) \
	/* Event: the logs reach this far. Sent again only after a CONSUMED */ \
	X(OUTPUT, output, 71, sizeof(struct agent_progress), NONE, 0, 0, 0, none) \
	/* Event: once per exec and attached connection, after the last OUTPUT; a failed file job \
	 * adds its error message */ \
	X(EXIT, exit, 72, sizeof(struct agent_exit), MESSAGE, 0, 0, 0, none) \
	/* fds: log of stdout[, of stderr]; a failed file job adds its error message */ \
	X(LOGR, logr, 73, sizeof(struct agent_logs), MESSAGE, 0, 0, AGENT_REPLY_FDS, logr)

enum agent_type {
#define AGENT_NUMBER(name, fn, number, ...) AGENT_##name = (number),
	AGENT_REQUESTS(AGENT_NUMBER)
	AGENT_REPLIES(AGENT_NUMBER)
#undef AGENT_NUMBER
};
/* clang-format on */

struct agent_hdr {
	uint32_t type, req;
	uint32_t len; /* of everything after this header */
	uint32_t pad;
};

/* ---- bind ---------------------------------------------------------------------------------- */

enum agent_bind_flag {
	AGENT_BIND_ROOT_CLASS = 1 << 0, /* commands may be root inside, with its capabilities */
	AGENT_BIND_ONE_ID = 1 << 1, /* only one id is mapped: never change user */
};

struct agent_bind {
	uint32_t version, flags;
	uint32_t uid, gid; /* default user of commands */
	uint32_t open_files;
	uint32_t output_pages; /* of all rings of running commands; 0: not known, no bound */
	uint64_t file_bytes;
};

/* ---- commands ------------------------------------------------------------------------------ */

enum agent_exec_flag {
	AGENT_BASH = 1 << 0, /* argv[0] is text for `bash -c TEXT`; may use the spare shell */
	AGENT_PTY = 1 << 1, /* rows, cols; output goes to the first log */
	AGENT_STDIN_OPEN = 1 << 2, /* stdin is a pipe fed by AGENT_STDIN; else /dev/null */
	AGENT_MERGE = 1 << 3, /* stderr into stdout's log */
	AGENT_ATTACHED = 1 << 4, /* as if ATTACH at offset 0 came first */
	AGENT_LOGIN = 1 << 5, /* bash -l */
	AGENT_LANDLOCK = 1 << 6, /* one more string: the programs that it may execute */
	AGENT_LANDLOCK_REQUIRED = 1 << 7, /* fail if the kernel has no Landlock */
	AGENT_OR_SH = 1 << 8, /* argv[0] is bash, else /bin/sh; AGENT_BASH implies it */
};

/* Followed by `argc` + `envc` + 2 NUL-terminated strings: argv, env ("K=V"), cwd, user. An empty
 * cwd is the user's home (or "/"); an empty user is the default one; "name" or "uid[:gid]".
 *
 * AGENT_LANDLOCK adds a third string, a list separated by colons: "/usr/bin/" is a directory to
 * search for names (at most AGENT_LANDLOCK_DIRS), "/opt/tool" is a program, and so is "ls" in each
 * of the directories. The shell of AGENT_BASH and AGENT_OR_SH is always allowed. */
struct agent_exec {
	uint64_t exec; /* chosen by the engine, never 0; ERR_CONFLICT while it has a record */
	uint32_t flags;
	uint32_t argc, envc;
	uint32_t timeout_ms; /* 0: none */
	uint32_t rows, cols;
	uint64_t log_bytes; /* size of the ring in each log: whole pages, AGENT_LOG_MAX at most */
};

struct agent_ref {
	uint64_t exec;
};

struct agent_started {
	uint64_t exec;
	int32_t pid; /* in the sandbox's PID namespace */
	uint32_t used_spare_shell;
};

struct agent_stdin {
	uint64_t exec;
	uint32_t eof; /* close after these bytes */
	uint32_t len;
};

enum agent_scope { AGENT_TO_GROUP = 0, AGENT_TO_PROCESS, AGENT_TO_TREE };

struct agent_signal {
	uint64_t exec;
	int32_t signo;
	uint32_t scope; /* enum agent_scope; TREE: every descendant, also in another session */
};

struct agent_resize {
	uint64_t exec;
	uint32_t rows, cols;
};

struct agent_offsets { /* ATTACH: where this reader starts; CONSUMED: what it no longer needs */
	uint64_t exec;
	uint64_t out, err;
};

struct agent_progress {
	uint64_t exec;
	uint64_t out_start, out_end; /* [start, end) can be read */
	uint64_t err_start, err_end;
};

/* Limits that the command hit. */
enum agent_hit {
	AGENT_HIT_TIME = 1 << 0,
	AGENT_HIT_MEMORY = 1 << 1, /* the OOM killer ran in this sandbox while it ran */
	AGENT_HIT_PIDS = 1 << 2, /* forks were refused while it ran */
	AGENT_HIT_OUTPUT = 1 << 3, /* oldest output was dropped */
	AGENT_HIT_DISK = 1 << 4, /* the file system was full at the end */
	AGENT_HIT_FILE = 1 << 5, /* died of SIGXFSZ */
};

struct agent_exit {
	uint64_t exec;
	int32_t code; /* exit status, or -1 when killed by a signal */
	int32_t signal; /* 0 when it exited */
	uint32_t hits; /* enum agent_hit */
	int32_t job_errno; /* AGENT_JOB: errno of a failed job, else 0 */
	uint64_t duration_us, cpu_us, max_rss_bytes;
	struct agent_progress at; /* final: nothing the command itself wrote is missing */
};

enum agent_proc_state { AGENT_RUNNING = 1, AGENT_EXITED };

/* Followed by argv as packed strings, cut at 4 kB. */
struct agent_proc {
	uint64_t exec;
	int32_t pid;
	uint32_t state, flags, argc;
	uint64_t started_ms; /* epoch */
	struct agent_exit exit; /* `at` is current while running */
};

/* LOGR: the content of PROC, and the logs themselves: one with AGENT_PTY or AGENT_MERGE, else two.
 * No logs and log_bytes 0: a file job, or lodge-init dropped them. It drops the logs of commands
 * that ended, oldest first, when a command starts while they hold more output than running commands
 * may (output_pages), more than 64 MiB, or too many descriptors. Their `at` is then empty and
 * AGENT_HIT_OUTPUT is set. */
struct agent_logs {
	struct agent_proc proc;
	uint64_t log_bytes;
};

/* The log: a file that the engine created, AGENT_LOG_HEAD + log_bytes long. Both sides keep it
 * open, lodge-init until AGENT_FORGET. Byte `o` of the stream is at AGENT_LOG_HEAD + o % log_bytes.
 * lodge-init keeps the head current so that the log can be read after lodge-init is gone; before
 * that the events are authoritative.
 *
 * While a connection is attached, the command blocks on a full ring. A closed connection is no
 * longer attached: the command continues, and without readers the oldest output is dropped. So an
 * engine that starts after a crash finds the complete output if it fits into the ring, and else
 * the newest log_bytes of it. */
#define AGENT_LOG_MAGIC 0x31474f4c45474f4cull
enum { AGENT_LOG_HEAD = 4096 };
struct agent_log {
	uint64_t magic, size; /* size: log_bytes */
	uint64_t start, end;
};

/* ---- files --------------------------------------------------------------------------------- */

enum agent_file_flag {
	AGENT_READ = 1 << 0,
	AGENT_WRITE = 1 << 1,
	AGENT_CREATE = 1 << 2,
	AGENT_TRUNC = 1 << 3,
	AGENT_APPEND = 1 << 4,
	AGENT_EXCL = 1 << 5,
	AGENT_DIR = 1 << 6, /* must be a directory */
	AGENT_PARENTS = 1 << 7, /* create missing parents, mode 0755; MKDIR: succeed if it exists */
	AGENT_NOFOLLOW = 1 << 8, /* STAT: the link itself */
	AGENT_NOREPLACE = 1 << 9, /* RENAME, COMMIT: fail if the target exists */
};

/* Followed by user NUL path NUL [path NUL]. Relative paths start at the user's home. */
struct agent_file {
	uint32_t flags;
	uint32_t mode; /* permission bits; 0: 0644, for directories 0755 */
	uint64_t limit; /* TEMP: expected size or 0 */
};

struct agent_token {
	uint64_t token;
};

struct agent_stat {
	uint32_t mode; /* st_mode */
	uint32_t nlink;
	uint32_t uid, gid;
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
	uint32_t target_len; /* the link target follows, without a NUL */
	uint32_t pad;
};

enum agent_job_op {
	AGENT_JOB_LIST = 1, /* writes agent_entry records, sorted by name, depth first */
	AGENT_JOB_REMOVE, /* whole tree; a missing path is success */
	AGENT_JOB_TAR_OUT, /* writes a pax tar of the directory's content */
	AGENT_JOB_TAR_IN, /* reads a tar into the directory */
	AGENT_JOB_WATCH, /* writes agent_change records until killed, AGENT_CHANGE_READY first */
};

enum agent_job_flag {
	AGENT_JOB_RECURSIVE = 1 << 0, /* WATCH; LIST uses depth */
	AGENT_JOB_OCI = 1 << 1, /* TAR_IN: .wh. entries remove */
	AGENT_JOB_OWNERS = 1 << 2, /* TAR_IN: keep owners; needs the root class */
	AGENT_JOB_ROOTFS = 1 << 3, /* TAR_IN: a root file system: skip devices, mount points */
};

/* Followed by user NUL path NUL. The job reads or writes the attached descriptor. */
struct agent_job {
	uint64_t exec;
	uint32_t op, flags;
	uint32_t depth; /* LIST: 1 = only the directory itself */
	uint32_t timeout_ms;
	uint64_t max_bytes, max_entries; /* TAR_IN: upper bounds; 0: only the disk limits it */
};

/* LIST record; followed by path_len bytes (relative to the listed directory) and target_len. */
struct agent_entry {
	uint32_t len; /* of the whole record */
	uint32_t path_len;
	struct agent_stat st;
};

enum agent_change_kind {
	AGENT_CHANGE_READY = 1, /* the watch is active: later changes are reported */
	AGENT_CHANGE_CREATE,
	AGENT_CHANGE_WRITE,
	AGENT_CHANGE_REMOVE,
	AGENT_CHANGE_RENAME, /* the old name; the new one follows as CREATE */
	AGENT_CHANGE_CHMOD,
	AGENT_CHANGE_LOST, /* the kernel's queue overflowed: changes are missing */
};

/* WATCH record; followed by path_len bytes relative to the watched directory. */
struct agent_change {
	uint32_t len, path_len;
	uint32_t kind, is_dir;
};

/* ---- replies ------------------------------------------------------------------------------- */

/* Milliseconds from now; 0: none. */
struct agent_deadlines {
	uint64_t idle_ms; /* unless a command runs then */
	uint64_t expire_ms;
};

struct agent_limits { /* as in struct agent_bind */
	uint32_t open_files, output_pages;
	uint64_t file_bytes;
};

struct agent_hello {
	uint32_t version, execs;
	uint64_t last_exec; /* highest id below AGENT_SIDE_EXEC ever used: continue above it */
};

/* Followed by an error message, NUL-terminated. */
#define AGENT_NO_OUTPUT ENOSR /* `sys` with ERR_LIMIT: the rings of running commands take all */
struct agent_error {
	uint32_t code; /* enum err_code */
	int32_t sys;
};

/* NULL if the bytes are one well-formed message that an engine (to_init) or lodge-init may send,
 * else the problem. `nfds` is the number of descriptors that came with it. */
const char *agent_msg_problem(const void *bytes, size_t len, size_t nfds, bool to_init);

/* The n-th NUL-terminated string in the tail of a message that agent_msg_problem() passed. */
const char *agent_msg_string(const void *bytes, size_t len, size_t n);

#endif
