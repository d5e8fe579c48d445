/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: operations that take long and run in a child process, which dies with the keeper: copying,
 * measuring and writing layers, removing trees. A new layer is made as n-NAME and becomes l-NAME
 * when it is complete. */
#ifndef LODGE_KEEPER_JOB_TABLE_H
#define LODGE_KEEPER_JOB_TABLE_H

#include "keeper/keeper.h"

enum job_kind { JOB_SNAP, JOB_MERGE, JOB_SYNC, JOB_EXPORT };

struct job_spec {
	enum job_kind kind;
	const char *name; /* of the job, and of the layer that it makes */
	/* JOB_SNAP: the running sandbox that stays frozen until the end, or "" */
	const char *sandbox;
	const struct storage_entry *from; /* topmost first */
	size_t nfrom;
	int out; /* JOB_EXPORT; else -1 */
};
int job_table_start(struct keeper *k, const struct job_spec *spec, struct err *err);
/* Returns the result of an ended job once and then forgets it. -1 and err if the job failed. */
int job_table_query(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
/* The same after a few milliseconds in which the job may end. */
int job_table_await(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
bool job_table_is_running(const char *name);
/* The kind of a job that reads this entry, or -1. */
int job_table_reader(const char *entry);
/* True if a job needs this sandbox frozen. */
bool job_table_freezes(const char *sandbox);
void job_table_cancel(const char *name);
void job_table_cancel_snap(const char *sandbox);
/* Records the exit of a child; false if it was not a job. job_table_step() handles the result. */
bool job_table_reaped(pid_t pid, int status);
/* Takes over the results of ended jobs and starts the sweeper if trees wait for removal. True when
 * no job is running. */
bool job_table_step(struct keeper *k);
/* True while trees are being removed; the next keeper continues with what is left. */
bool job_table_is_sweeping(const struct keeper *k);
/* Before exit: cancel kills the jobs, end abandons those that have not exited. */
void job_table_cancel_all(void);
void job_table_end(struct keeper *k);

#endif
