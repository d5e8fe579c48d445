/* SPDX-License-Identifier: Apache-2.0 */
/* The process table: one record per command or job, from its start until it is forgotten. */
#ifndef LODGE_INIT_EXEC_PROCESS_TABLE_H
#define LODGE_INIT_EXEC_PROCESS_TABLE_H

#include "init/core/init_state.h"
#include "init/exec/exec_cgroup.h"

enum process_state {
	PROCESS_FREE,
	PROCESS_RUNNING,
	PROCESS_ENDING, /* its process is gone, what it wrote is still being drained */
	PROCESS_DONE,
};

/* One output stream: a pipe on the command's side, a ring in a file on the engine's. */
struct output_stream {
	int pipe; /* -1 after its end */
	int log;
	bool polled; /* in the epoll set */
	bool cut; /* the log refused a write: everything after is dropped */
	uint64_t start, end;
	uint64_t owed; /* where the command's own output ends */
};

/* Input that the command's pipe did not take yet. */
struct stdin_queue {
	int fd; /* pipe or terminal; -1: none, or closed */
	bool tty;
	bool polled, eof;
	uint8_t conn; /* who waits for the answer */
	bool waiting, answered; /* answered: done, the answer is due */
	int result; /* errno for that answer */
	uint32_t req, off, len;
	char *buf; /* mapped while there is something in it */
};

struct process {
	uint64_t id;
	uint8_t state;
	bool job, shimmed, shim_gone;
	uint8_t kills; /* how often its tree was killed */
	uint32_t flags;
	pid_t pid, shim;
	int shim_fd; /* where the shim reports */
	int error_fd; /* where a job leaves its error */
	struct exec_cgroup leaf;
	struct output_stream out[2];
	struct stdin_queue in;
	uint64_t log_bytes;
	uint64_t started_us, started_ms, deadline_us, grace_us, ended_us; /* 0: none */
	uint64_t oom_before, pids_before;
	uint16_t attached; /* one bit per connection, as below */
	uint16_t told; /* got an OUTPUT and has not answered with CONSUMED */
	uint16_t news; /* there is output it was not told of */
	uint16_t exit_due, exit_sent;
	uint64_t seen[AGENT_CONNS_MAX][2];
	uint32_t argc, text_len;
	struct agent_exit exit;
};

/* A free record, made by giving up the one that ended first if need be; NULL: all are running. */
struct process *process_table_new(uint64_t id);
struct process *process_table_find(uint64_t id);
struct process *process_table_find_pid(pid_t pid); /* of the process, or of its shim */
struct process *process_table_at(uint32_t n); /* NULL if free */
uint32_t process_table_index(const struct process *r);
uint32_t process_table_end(void); /* no used record at or after this */
void process_table_free(struct process *r);
char *process_table_text(struct process *r); /* INIT_TEXT_SIZE bytes */
char *process_table_sentence(struct process *r); /* the last INIT_SENTENCE_SIZE of them */
const char *process_table_cwd(struct process *r);
void process_table_set_cwd(struct process *r, const char *cwd);
void process_table_describe(struct process *r, const char *strings, uint32_t argc);
uint64_t process_table_last_id(void); /* below AGENT_SIDE_EXEC */
uint32_t process_table_count(void);

#endif
