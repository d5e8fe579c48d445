/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the engine and lodge-init: SOCK_SEQPACKET, a struct agent_hdr, a fixed struct
 * per type, then packed strings or bytes. Every request gets exactly one answer with the same
 * `req` (AGENT_CONSUMED: none; AGENT_LIST: many AGENT_PROC, then AGENT_OK). Events carry req 0.
 *
 * Both sides treat the other as hostile: lengths are checked before use, unknown types refused.
 * Output never travels here: lodge-init writes it into the log files the engine passed with
 * AGENT_EXEC (see agent_log below) and only tells how far they reach. */
#ifndef LODGE_WIRE_AGENT_PROTO_H
#define LODGE_WIRE_AGENT_PROTO_H

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
	AGENT_REPLY_FDS = 2, /* of one answer */
	AGENT_PAGE = 4096, /* the ring of a log is a multiple of it */
	AGENT_LANDLOCK_DIRS = 32,
};
#define AGENT_LOG_MAX (1ull << 40) /* largest ring of a log */

/* Numbers of commands and jobs. The engine's main connection counts up from 1 and goes on above
 * agent_hello.last_exec. Every other connection that starts something takes a random range of its
 * own from here on, (1 .. 2^31-1) << 32, so that none of them can meet another. */
#define AGENT_SIDE_EXEC (1ull << 32)

enum agent_type {
	/* keeper -> init, once, before anything else is accepted */
	AGENT_BIND = 1, /* agent_bind -> OK, or nothing when req is 0 */

	/* engine -> init */
	AGENT_HELLO, /* -> HELLO (agent_hello) */
	AGENT_EXEC, /* agent_exec + strings, fds: log of stdout[, of stderr] -> STARTED */
	AGENT_SPARE_SHELL, /* agent_exec + strings with no command: keep one bash waiting for it ->
			      OK */
	AGENT_STDIN, /* agent_stdin + bytes -> OK once the command's pipe took them all. No bytes:
			OK once it took what a connection that is gone left waiting */
	AGENT_SIGNAL, /* agent_signal -> OK */
	AGENT_RESIZE, /* agent_resize -> OK, in force by then */
	AGENT_ATTACH, /* agent_offsets -> OK; from now on this connection gets events of the exec
			 and its log does not drop what this connection has not consumed */
	AGENT_DETACH, /* agent_ref -> OK */
	AGENT_CONSUMED, /* agent_offsets; no answer */
	AGENT_LIST, /* -> PROC ..., OK */
	AGENT_STATUS, /* agent_ref -> PROC */
	AGENT_FORGET, /* agent_ref: drop a finished record -> OK */
	AGENT_OPEN, /* agent_file + path -> FD + one fd: a regular file or directory, never else */
	AGENT_TEMP, /* agent_file + path -> FD(token) + one fd: becomes `path` at COMMIT */
	AGENT_COMMIT, /* agent_token: fsync, rename over, fsync of the directory -> OK. The engine
			 syncs what it wrote first, so that lodge-init has nothing to wait for */
	AGENT_ABORT, /* agent_token -> OK */
	AGENT_STAT, /* agent_file + path -> STAT + link target */
	AGENT_MKDIR, /* agent_file + path (AGENT_PARENTS) -> OK */
	AGENT_RENAME, /* agent_file + path + NUL + path -> OK */
	AGENT_REMOVE, /* agent_file + path: file or empty directory -> OK */
	AGENT_SYMLINK, /* agent_file + target + NUL + path -> OK */
	AGENT_CHMOD, /* agent_file + path -> OK */
	AGENT_JOB, /* agent_job + path, one fd: a long file operation as a process -> STARTED;
		      this connection is attached to it and gets its EXIT */
	AGENT_LOGS, /* agent_ref -> LOGR: for an engine that did not start the command */

	/* init -> engine */
	AGENT_OK = 64,
	AGENT_ERROR, /* agent_error + sentence */
	AGENT_STARTED, /* agent_started */
	AGENT_PROC, /* agent_proc + strings */
	AGENT_FD, /* agent_token, one fd */
	AGENT_STATR, /* agent_stat + link target */
	AGENT_HELLOR, /* agent_hello */
	/* events, to attached connections */
	AGENT_OUTPUT, /* agent_progress: the logs reach this far now; again only after a CONSUMED */
	AGENT_EXIT, /* agent_exit [+ sentence of a failed job]: once per exec and attached
		       connection, after the last OUTPUT */
	/* an answer again */
	AGENT_LOGR, /* agent_logs [+ sentence of a failed job], fds: log of stdout[, of stderr] */
};

struct agent_hdr {
	uint32_t type, req;
	uint32_t len; /* of everything after this header */
	uint32_t pad;
};

/* ---- bind ---------------------------------------------------------------------------------- */

enum agent_bind_flag {
	AGENT_BIND_ROOT_CLASS =
		1 << 0, /* commands may be root inside; keep the class's capabilities */
	AGENT_BIND_ONE_ID = 1 << 1, /* only one id is mapped: do not change user */
};

struct agent_bind {
	uint32_t version, flags;
	uint32_t uid, gid; /* default user of commands */
	uint32_t open_files;
	uint32_t pad;
	uint64_t file_bytes;
};

/* ---- commands ------------------------------------------------------------------------------ */

enum agent_exec_flag {
	AGENT_BASH = 1 << 0, /* argv[0] is bash text, run as `bash -c TEXT`; may use the
				used_spare_shell shell */
	AGENT_PTY = 1 << 1, /* rows, cols; output goes to the first log */
	AGENT_STDIN_OPEN = 1 << 2, /* stdin is a pipe fed by AGENT_STDIN; else /dev/null */
	AGENT_MERGE = 1 << 3, /* stderr into stdout's log */
	AGENT_ATTACHED = 1 << 4, /* as if ATTACH at offset 0 came first: no output can be missed */
	AGENT_LOGIN = 1 << 5, /* bash -l */
	AGENT_LANDLOCK =
		1 << 6, /* one more string: the programs that it may execute, and all it starts */
	AGENT_LANDLOCK_REQUIRED =
		1 << 7, /* with AGENT_LANDLOCK: not started where the kernel cannot see to it */
	AGENT_OR_SH = 1 << 8, /* argv[0] is bash: /bin/sh where there is none; text has that too */
};

/* Followed by `argc` + `envc` + 2 NUL-terminated strings: argv, env ("K=V"), cwd, user. An empty
 * cwd is the user's home (or "/"); an empty user is the default one; "name" or "uid[:gid]".
 *
 * With AGENT_LANDLOCK a third string behind them, of parts with colons between them: "/usr/bin/" is
 * a directory to look for names in, AGENT_LANDLOCK_DIRS of them at most; "/opt/tool" is a program,
 * and so is "ls" in each of the directories. The shell that AGENT_BASH or AGENT_OR_SH asks for may
 * always be executed. */
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
	int32_t pid; /* as the sandbox sees it */
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
	uint32_t scope; /* enum agent_scope; TREE: everything it started, wherever it went */
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

enum agent_hit { /* what ended or cut the command */
		 AGENT_HIT_TIME = 1 << 0,
		 AGENT_HIT_MEMORY =
			 1 << 1, /* the kernel's OOM killer struck in this sandbox meanwhile */
		 AGENT_HIT_PIDS = 1 << 2, /* forks were refused meanwhile */
		 AGENT_HIT_OUTPUT = 1 << 3, /* oldest output was dropped */
		 AGENT_HIT_DISK = 1 << 4, /* the file system was full at the end */
		 AGENT_HIT_FILE = 1 << 5, /* died of SIGXFSZ */
};

struct agent_exit {
	uint64_t exec;
	int32_t code; /* exit status, or -1 when killed by a signal */
	int32_t signal; /* 0 when it exited */
	uint32_t hits; /* enum agent_hit */
	int32_t job_errno; /* AGENT_JOB: errno of a failed one, else 0 */
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

/* LOGR: what STATUS tells, and the logs themselves. As many as the command has (one with AGENT_PTY
 * or AGENT_MERGE, else two), or none and log_bytes 0: of a job, or when lodge-init gave them up.
 * It does so when a command is started while those that ended and were not forgotten hold more
 * than 64 MiB of output, or too many descriptors: first those that ended first. Their `at` is then
 * empty and AGENT_HIT_OUTPUT set. While nobody starts anything nothing is given up. */
struct agent_logs {
	struct agent_proc proc;
	uint64_t log_bytes;
};

/* The log: a file the engine made, AGENT_LOG_HEAD + log_bytes long, held open by both: by
 * lodge-init until the command is forgotten. Byte `o` of the stream is at AGENT_LOG_HEAD + o %
 * log_bytes. lodge-init keeps the head current so that a log can be read when nobody is left to
 * ask; while lodge-init lives the events are the truth.
 *
 * A full ring waits for the connections that are attached. One that ends, however it ends, is not
 * attached any more: the command goes on, and with nobody left the oldest output is dropped. So
 * what an engine finds after a crash of the last one is complete as long as it fits into the
 * ring, and else the newest log_bytes of it. */
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
	AGENT_PARENTS = 1 << 7, /* make missing parents, mode 0755; MKDIR: existing is fine */
	AGENT_NOFOLLOW = 1 << 8, /* STAT: the link itself */
	AGENT_NOREPLACE = 1 << 9, /* RENAME, COMMIT: fail if the target is there */
};

/* Followed by user NUL path NUL [path NUL]. Relative paths start at the user's home. */
struct agent_file {
	uint32_t flags;
	uint32_t mode; /* permission bits; 0 where it says nothing: 0644, directories 0755 */
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
	uint32_t target_len; /* link target follows, bytes as they are */
	uint32_t pad;
};

enum agent_job_op {
	AGENT_JOB_LIST = 1, /* writes agent_entry records, sorted by name, depth first */
	AGENT_JOB_REMOVE, /* whole tree; a missing path is success */
	AGENT_JOB_TAR_OUT, /* writes a pax tar of the directory's content */
	AGENT_JOB_TAR_IN, /* reads a tar into the directory */
	AGENT_JOB_WATCH, /* writes agent_change records until killed; first an AGENT_CHANGE_READY */
};

enum agent_job_flag {
	AGENT_JOB_RECURSIVE = 1 << 0, /* WATCH; LIST uses depth */
	AGENT_JOB_OCI = 1 << 1, /* TAR_IN: .wh. entries remove */
	AGENT_JOB_OWNERS = 1 << 2, /* TAR_IN: keep owners; needs the root class */
	AGENT_JOB_ROOTFS =
		1 << 3, /* TAR_IN: a whole root: skip devices, and what is mounted here */
};

/* Followed by user NUL path NUL. The attached fd is where it reads or writes. */
struct agent_job {
	uint64_t exec;
	uint32_t op, flags;
	uint32_t depth; /* LIST: 1 = only the directory itself */
	uint32_t timeout_ms;
	uint64_t max_bytes, max_entries; /* TAR_IN: refused beyond; 0: the disk decides */
};

/* LIST record; followed by path_len bytes (relative to the listed directory) and target_len. */
struct agent_entry {
	uint32_t len; /* of the whole record */
	uint32_t path_len;
	struct agent_stat st;
};

enum agent_change_kind {
	AGENT_CHANGE_READY = 1, /* the watch is used_spare_shell */
	AGENT_CHANGE_CREATE,
	AGENT_CHANGE_WRITE,
	AGENT_CHANGE_REMOVE,
	AGENT_CHANGE_RENAME, /* the old name; the new one follows as CREATE */
	AGENT_CHANGE_CHMOD,
	AGENT_CHANGE_LOST, /* the kernel's queue overflowed: list again */
};

/* WATCH record; followed by path_len bytes relative to the watched directory. */
struct agent_change {
	uint32_t len, path_len;
	uint32_t kind, is_dir;
};

/* ---- answers ------------------------------------------------------------------------------- */

struct agent_hello {
	uint32_t version, execs;
	uint64_t last_exec; /* highest id below AGENT_SIDE_EXEC ever used: go on above it */
};

/* Followed by a sentence, NUL-terminated. */
struct agent_error {
	uint32_t code; /* enum err_code */
	int32_t sys;
};

/* NULL if the bytes are one well-formed message an engine (or init, with to_init false) may send,
 * else what is wrong. `nfds` is how many descriptors came with it. */
const char *agent_msg_problem(const void *bytes, size_t len, size_t nfds, bool to_init);

/* The n-th NUL-terminated string in the tail of a message that agent_msg_problem() passed. */
const char *agent_msg_string(const void *bytes, size_t len, size_t n);

#endif
