/* SPDX-License-Identifier: Apache-2.0 */
/* The process table: one record per command or file job, from its start until it is forgotten. */
#ifndef LODGE_INIT_EXEC_PROCESS_TABLE_H
#define LODGE_INIT_EXEC_PROCESS_TABLE_H

#include "init/core/init_state.h"
#include "init/exec/exec_cgroup.h"

enum process_state {
	PROCESS_FREE,
	PROCESS_RUNNING,
	PROCESS_ENDING, /* its process has exited, its output is still being drained */
	PROCESS_DONE,
};

/* One output stream: a pipe on the command's side, a ring in a file on the engine's. */
struct output_stream {
	int pipe; /* -1 after end of file */
	int log;
	bool polled; /* in the epoll set */
	bool log_failed; /* a write to the log failed: all later output is dropped */
	uint64_t start, end;
	uint64_t final_end; /* where the command's own output ends, known when it exited */
};

/* Input that the command's pipe has not taken yet. */
struct stdin_queue {
	int fd; /* pipe or terminal; -1: none, or closed */
	bool tty;
	bool polled, eof;
	uint8_t conn; /* the connection that gets the reply */
	bool reply_pending; /* that connection waits until the input is written */
	bool reply_due; /* written, or failed: send the reply */
	int result; /* errno for that reply */
	uint32_t req, off, len;
	char *buf; /* mapped while it holds bytes */
};

struct process {
	uint64_t id;
	uint8_t state;
	bool is_file_job, has_subreaper, subreaper_gone;
	uint8_t kills; /* how often its process tree was killed */
	uint32_t flags;
	pid_t pid, subreaper;
	int subreaper_fd; /* reports of the subreaper */
	int error_fd; /* error of a file job */
	struct exec_cgroup cgroup;
	struct output_stream out[2];
	struct stdin_queue in;
	uint64_t log_bytes;
	uint64_t started_us, started_ms, deadline_us, grace_us, ended_us; /* 0: none */
	uint64_t oom_before, pids_before;
	/* One bit per connection: */
	uint16_t attached;
	uint16_t notified; /* got an OUTPUT and has not sent CONSUMED since */
	uint16_t unreported; /* there is output newer than its last OUTPUT */
	uint16_t exit_due;
	uint64_t consumed[AGENT_CONNS_MAX][2];
	uint32_t argc, text_len;
	struct agent_exit exit;
};

/* A free record; if there is none, the record that ended first is reused. NULL: all are running. */
struct process *process_table_new(uint64_t id);
struct process *process_table_find(uint64_t id);
struct process *process_table_find_pid(pid_t pid); /* by the command's pid or its subreaper's */
struct process *process_table_at(uint32_t n); /* NULL if free */
uint32_t process_table_index(const struct process *r);
struct process *process_table_next(const struct process *r); /* NULL: the first; NULL after all */
void process_table_free(struct process *r);
char *process_table_text(struct process *r); /* INIT_TEXT_SIZE bytes */
char *process_table_message(struct process *r); /* the last INIT_MESSAGE_SIZE of them */
char *process_table_cwd(struct process *r); /* INIT_CWD_SIZE of them, before that */
void process_table_set_argv(struct process *r, const char *strings, uint32_t argc);
struct agent_hello process_table_summary(void);

#endif
