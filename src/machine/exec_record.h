/* SPDX-License-Identifier: Apache-2.0 */
/* Execs as the engine sees them, for the engine's own layers.
 *
 * An exec begins, is reported as started, ends, and is recorded: its output in files, its end in
 * the store; only then lodge-init may forget it. So whenever the engine is killed, lodge-init or
 * the store knows how the exec ended.
 *
 * A record lives as long as a handle refers to it. The engine has a handle of its own: in
 * machine.execs until the exec ends, then in engine.exec_writes.unwritten until it is recorded. */
#ifndef LODGE_MACHINE_EXEC_RECORD_H
#define LODGE_MACHINE_EXEC_RECORD_H

#include <stdatomic.h>

#include "machine/machine.h"
#include "machine/exec.h"

struct exec_handle {
	struct exec_record *record;
	struct exec_handle *next_of_record; /* machine.mutex */
	void (*notify)(void *arg);
	void *notify_arg;
	struct exec_handle *next; /* the engine's own: in machine.execs (machine.mutex) or
				     engine.exec_writes.unwritten */
	bool writing; /* a thread records it; engine.workers.mutex */
	unsigned round; /* in which that was tried last; engine.workers.mutex */
	bool created; /* by the exec_start() that began it */
	bool (*cancel)(void *arg);
	void *cancel_arg;
	bool holds; /* a full log waits for the reader of this handle, which has read...
		       machine.mutex */
	uint64_t consumed[2]; /* ... so far */
};

enum exec_row {
	EXEC_ROW_PENDING, /* not in the store yet: how it ended cannot be either */
	EXEC_ROW_WRITTEN,
	EXEC_ROW_FAILED, /* no caller knows this exec: it is killed and forgotten */
};

/* A stream after its end. The file has the last `size` bytes of it. */
struct exec_output_file {
	int fd; /* -1: nothing was kept */
	uint64_t size;
};

struct exec_record {
	atomic_uint refs; /* handles */
	struct engine *engine;
	struct machine
		*machine; /* counted; NULL: it ended, the store and the files have all of it */

	/* with machine.mutex, as long as there is one */
	pthread_cond_t changed; /* it started, wrote, ended, got its row */
	struct exec_handle *handles;
	struct exec_handle *own_handle; /* the engine's */
	struct store_exec rec; /* id, tenant, session and command never change */
	struct guest_exec
		*exec; /* NULL: not begun, in files by now, or (not ended) the engine closes */
	uint64_t log_bytes, reserved; /* of each ring, and of all: see output_share.h */
	enum exec_row row;
	bool started, ended;
	bool start_failed; /* it never ran: */
	struct err start_error;
	bool plain, merge; /* bash text as the session's own user, environment and directory */
	bool holds; /* a full log waits for exec_record_consumed() */
	uint32_t timeout_ms; /* its time limit; 0: none, or started by an earlier engine */
	struct guest_exec_result result;
	struct exec_output_file output[2];
};

extern const struct guest_exec_ops exec_record_ops;

/* A record with one handle, the engine's own; `v` may be NULL. Takes over what rec owns, also on
 * failure: NULL. */
struct exec_record *exec_record_new(struct engine *e, struct machine *v, struct store_exec *rec,
				    struct err *err);
struct exec_handle *exec_record_add_handle(struct exec_record *c); /* NULL: no memory */
void exec_record_close(struct exec_handle *x); /* the exec keeps running */
struct exec_record *exec_record_lock(struct exec_record *c);
void exec_record_unlock(struct exec_record *c);
DEFINE_AUTO(struct exec_record *, exec_record_unlock);
/* Holds machine.mutex, if there is a machine, until the end of the scope. */
#define EXEC_RECORD_GUARD(c)                                                                       \
	auto_call(exec_record_unlock) struct exec_record *guard_ __attribute__((unused)) =         \
		exec_record_lock(c)

/* With machine.mutex: it has begun (c->exec) and is added to machine.execs. */
void exec_record_link(struct exec_record *c);
/* With machine.mutex: it got its row, or did not; from then on its end can be recorded. */
void exec_record_set_row(struct exec_record *c, enum exec_row row);
/* With machine.mutex: its exec has ended, or ends with its sandbox. */
void exec_record_end(struct exec_record *c, enum exec_state state);
/* The same with the result that lodge-init reported. */
void exec_record_exited(struct exec_record *c);
/* With machine.mutex: waits until something of it changes. deadline_ms (of clock_mono_ms()) < 0:
 * none. False: timed out. */
bool exec_record_wait(struct exec_record *c, int64_t deadline_ms);
/* With machine.mutex: frees the log up to the offset that the slowest of its readers reached. */
int exec_record_consumed(struct exec_record *c, struct err *err);
/* A new handle on the exec with this id if it is in memory: of v (may be NULL), or not recorded
 * yet. NULL: none. */
struct exec_handle *exec_record_find(struct engine *e, struct machine *v, const char *id);

/* The sandbox is gone: ends every exec that has not ended. With machine.mutex. */
void exec_end_all(struct machine *v);
/* The engine closes and the execs keep running: drops the handles and records nothing. With
 * machine.mutex, or before another thread knows the machine. */
void exec_detach_all(struct machine *v);
/* Tries once to record each exec that ended and is not recorded yet. `wait`: also until other
 * threads have recorded theirs. */
void exec_write_ended(struct engine *e, bool wait);

#endif
