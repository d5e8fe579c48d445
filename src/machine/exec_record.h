/* SPDX-License-Identifier: Apache-2.0 */
/* Commands from inside, for the run*.c, output.c and loan.c of this directory only.
 *
 * A command is begun, told to have started, ends, and is written down: output to files, end to the
 * store, and only then lodge-init may forget it. So whenever the engine is killed, either
 * lodge-init or the store knows how it ended.
 *
 * A command lives as long as anybody has a handle on it. The engine is one of them: its own handle
 * is in live.runs until the command ends, then in engine.unwritten until it is written down. */
#ifndef LODGE_MACHINE_EXEC_RECORD_H
#define LODGE_MACHINE_EXEC_RECORD_H

#include <stdatomic.h>

#include "engine/internal.h"
#include "machine/exec.h"

struct place_turn;

struct run {
	struct command *command;
	struct run *peer; /* the next handle of the same command; live.mutex */
	void (*notify)(void *arg);
	void *notify_arg;
	struct run *next; /* the engine's own: in live.runs (live.mutex) or engine.unwritten */
	bool writing; /* somebody writes it down; engine.work_mutex */
	unsigned round; /* in which that was tried last; engine.work_mutex */
	bool first; /* of the run_start() that began it */
	bool (*give_up)(void *arg);
	void *give_up_arg;
	bool holds; /* a full log waits for its reader, who has read... live.mutex */
	uint64_t seen[2]; /* ... so far */
};

enum command_row {
	ROW_PENDING, /* not in the store yet: how it ended cannot be either */
	ROW_THERE,
	ROW_FAILED, /* nobody was told of this command: it is killed and forgotten */
};

/* A stream after its end. The file has the last `size` bytes of it. */
struct output {
	int fd; /* -1: nothing was kept */
	uint64_t size;
};

struct command {
	atomic_uint refs; /* handles */
	struct engine *engine;
	struct live *live; /* counted; NULL: it ended, the store and the files have all of it */

	/* with live.mutex, as long as there is one */
	pthread_cond_t moved; /* it started, wrote, ended, got its row */
	struct run *handles;
	struct run *own; /* the engine's */
	struct store_exec rec; /* id, tenant, session and command never change */
	struct exec *exec; /* NULL: not begun, in files by now, or (not ended) the engine closes */
	enum command_row row;
	bool started, ended;
	bool refused; /* it never ran: `why` */
	struct err why;
	bool plain, merge; /* bash text as the session's own user, environment and directory */
	bool holds; /* a full log waits for command_consumed() */
	struct exec_result result;
	struct output kept[2];
};

extern const struct exec_ops command_ops;

/* A command of this id and session with one handle, the engine's own; `live` may be NULL. Steals
 * what rec owns, also on failure: NULL. */
struct command *command_new(struct engine *e, struct live *v, struct store_exec *rec,
			    struct err *err);
struct run *run_new(struct command *c); /* NULL: no memory */
void command_lock(struct command *c);
void command_unlock(struct command *c);

/* With live.mutex: it has been begun (c->exec) and is one of v->runs now. */
void command_link(struct command *c);
/* With live.mutex: it got its row, or did not; from then on its end can be written down. */
void command_set_row(struct command *c, enum command_row row);
/* With live.mutex: its exec has ended, or ends with its sandbox. */
void command_end(struct command *c, enum run_state state);
/* With live.mutex: lets the log go on as far as the slowest of those it waits for has read. */
int command_consumed(struct command *c, struct err *err);
bool command_is_held(const struct command *c);
/* A new handle on the one of this id that is in memory: of v (may be NULL), or not written down
 * yet. NULL: there is none. */
struct run *runs_find(struct engine *e, struct live *v, const char *id);

/* ---- output.c: kept output ------------------------------------------------------------------ */

/* The sandbox is gone: every command that has not ended did now. With live.mutex. */
void runs_end(struct live *v);
/* The engine goes and the commands stay: handles are dropped, nothing is recorded. With live.mutex,
 * or before anybody else knows it. */
void runs_leave(struct live *v);
/* Writes down what ended and is not written yet; waits for it. */
void runs_drain(struct engine *e);
/* The same for what could not be written before; waits for nobody. */
void runs_retry(struct engine *e);

#endif
