/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-keeper: the only privileged process. Single thread, fixed messages, no parsing of anything
 * a guest wrote. What it remembers lies in a directory for what is running (a reboot empties it, as
 * it ends the processes), /run/lodge/H for root, <home>/run for others, H naming the home:
 *
 *   d/                                state of the keeper of a daemon
 *   o-RANDOM/                         state of one `lodge run`
 *     sandboxes/ID/{record,init.sock}   live ones; the directory is made before anything else
 *     trash/ID/                         being removed; a crash leaves them for the next start
 *   mnt/                              mount points, used in our own mount namespace only
 */
#ifndef LODGE_KEEPER_KEEPER_H
#define LODGE_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "keeper/sandbox_table.h"
#include "runtime/isolate/cgroup.h"
#include "runtime/isolate/idmap.h"
#include "runtime/isolate/root_open.h"
#include "runtime/isolate/sandbox_spawn.h"
#include "runtime/storage/storage.h"

enum { KEEPER_PARTS_MAX = 8, KEEPER_SLOTS_MAX = 1024 };

/* How names of slots begin, and of no sandbox. */
#define KEEPER_SLOT_PREFIX "p."

struct slot { /* a sandbox that nobody has yet */
	char name[KEEPER_ID_SIZE];
	pid_t pid;
	uint64_t start; /* of the process: tells a reused pid */
	int64_t made_ms;
	struct parts parts;
	bool rooted; /* has the usual root, is bound, and keeps a spare shell */
	uint32_t store; /* of that root; on disk its files are s-NAME */
};

struct keeper {
	bool rootless, oneshot;
	/* The engine has fewer rights than we: the home is this one, and nothing else of the host
	 * is shown to anybody. NULL: it has the same. */
	const char *closed;
	bool draining; /* the engine is gone: finish and leave */
	bool stuck; /* something of a dead keeper would not go: not tried again */
	int home, run; /* directories: what lasts, what is running */
	int state; /* below run, locked for as long as we live */
	int boxes, trash; /* state/sandboxes, state/trash */
	int scratch; /* mount points of our own mount namespace */
	uint32_t features; /* KEEPER_HAS_* */
	struct cgroup_host cgroups;
	struct spawn_host spawn;
	struct storage shelf;
	struct idmap_host kit_host;
	struct root_set roots;
	struct sandbox_table table;
	size_t trash_count;
	/* made ahead */
	struct parts parts[KEEPER_PARTS_MAX];
	size_t nparts, parts_wanted;
	struct slot *slots[KEEPER_SLOTS_MAX];
	size_t nslots;
	struct keeper_pool pool;
	uint64_t hits, misses, serial;
};

/* create.c */
int keeper_create(struct keeper *k, const char *id, const struct keeper_create *c, const int *dirs,
		  struct keeper_reply *reply, int *ret_fd, struct err *err);
int keeper_connect(struct keeper *k, const char *id, int *ret_fd, struct err *err);
int keeper_bind(struct keeper *k, const struct keeper_create *c, int fd, struct err *err);
int keeper_prepare_root(struct keeper *k, const char *id, const struct keeper_create *c,
			const int *dirs, const struct idmap *kit, struct rootfs *ret,
			struct err *err);
int keeper_listen(int dir);

/* trash.c */
/* SIGKILL, if it is still the process we started. */
void keeper_kill_init(const struct sandbox_record *b);
int keeper_destroy(struct keeper *k, struct sandbox_record *b, struct err *err);
/* As destroy, but files that are kept stay. */
int keeper_stop(struct keeper *k, struct sandbox_record *b, struct err *err);
/* Of a kept sandbox that does not live any more; *ret_found is set when there were any. */
int keeper_destroy_files(struct keeper *k, const char *id, bool *ret_found, struct err *err);
/* Whether it is in the trash: its processes may still be going. */
bool keeper_is_ending(const struct keeper *k, const char *id);
/* Goes on with what is being removed; true when nothing is left to do. */
bool keeper_empty_trash(struct keeper *k);
/* Removes what a create that failed left in sandboxes/ID. */
void keeper_discard(struct keeper *k, struct sandbox_record *b);

/* parts.c */
/* Unique among all keepers that ever were: an earlier one's slots and groups may live on. */
unsigned long long keeper_serial(struct keeper *k);
/* `inner`: the one id inside, where only one is mapped. The limits are in force. */
int keeper_take_parts(struct keeper *k, uid_t inner, const struct limits *limits, struct parts *ret,
		      struct err *err);
/* From the usual limits, with which everything ahead is made, to these. */
int keeper_tune(struct keeper *k, const char *group, const struct limits *limits, bool settled,
		struct err *err);
/* Makes one set ahead; false when none is wanted. */
bool keeper_make_parts_ahead(struct keeper *k);
/* Of a slot that runs: keeps only what its claim still needs. Every descriptor we hold is copied by
 * the next clone. */
void keeper_parts_trim(struct parts *p);
void keeper_parts_close(struct parts *p); /* used up: what is left are our descriptors */
void keeper_parts_drop(struct keeper *k, struct parts *p); /* never used */

/* pool.c */
/* One that fits, or NULL. */
struct slot *keeper_take_slot(struct keeper *k, const struct keeper_create *c);
void keeper_slot_free(struct keeper *k, struct slot *s, bool discard);
bool keeper_is_slot(const char *id);
int keeper_set_pool(struct keeper *k, const struct keeper_pool *pool, struct err *err);
/* Whether the next one might find nothing made ahead. */
bool keeper_is_short(const struct keeper *k);
/* After a child was reaped: those that are gone do not wait to be found so. Whether any was. */
bool keeper_drop_dead(struct keeper *k);
/* Until something has to be made anew; -1: nothing has. */
int keeper_rest_ms(const struct keeper *k);
/* Makes one thing ahead, if any is wanted; false when nothing is. */
bool keeper_prepare_one(struct keeper *k);

/* adopt.c */
int keeper_adopt(struct keeper *k, struct err *err);
/* Ends whatever the one-shot keepers left that died before they could clean up. */
void keeper_sweep_oneshots(struct keeper *k, const char *own);

/* template.c */
int keeper_seal_template(struct keeper *k, struct sandbox_record *b, const char *name,
			 struct err *err);
int keeper_drop_template(struct keeper *k, const char *name, struct err *err);
/* LOCK_SH while a sandbox is made, LOCK_EX while a template goes. An fd to close, or -errno. */
int keeper_lock_templates(struct keeper *k, int how);

/* layer.c */
/* The files of a stopped sandbox become a layer. */
int keeper_seal(struct keeper *k, const char *id, const char *name, struct err *err);
int keeper_snap(struct keeper *k, const char *id, const char *name, struct keeper_job *ret,
		struct err *err);
int keeper_drop_layer(struct keeper *k, const char *name, struct err *err);
int keeper_sync_layer(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
int keeper_merge_layers(struct keeper *k, const struct keeper_layer *l, struct keeper_job *ret,
			struct err *err);
int keeper_export_layers(struct keeper *k, const struct keeper_layer *l, int fd,
			 struct keeper_job *ret, struct err *err);
/* Makes sure that no job reads it any more, or fails with EBUSY. */
int keeper_release_layer(struct keeper *k, const char *name, struct err *err);
/* Freezes or thaws because somebody asked for it; an earlier keeper's word is good as well. */
int keeper_pause(struct keeper *k, struct sandbox_record *b, bool paused, struct err *err);
/* What dead jobs left, and trees whose removal did not come to an end. */
void keeper_sweep_layers(struct keeper *k);

/* job.c */
enum job_kind { JOB_SNAP, JOB_MERGE, JOB_SYNC, JOB_EXPORT };

struct job_spec {
	enum job_kind kind;
	const char *name; /* of the job; of the layer too, where it makes one */
	const char *box; /* JOB_SNAP: the sandbox that is frozen meanwhile; "": none lives */
	char (*from)[KEEPER_ID_SIZE + 4]; /* entries of the store, topmost first */
	size_t nfrom;
	int out; /* JOB_EXPORT */
};
int keeper_job_start(struct keeper *k, const struct job_spec *spec, struct err *err);
/* Fails when it did; told once. */
int keeper_job_tell(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
/* The same after a moment in which it may end. */
int keeper_job_await(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
bool keeper_job_runs(const char *name);
/* The kind of a job that reads this entry, or -1. */
int keeper_job_reads(const char *entry);
/* Whether a job holds this sandbox frozen. */
bool keeper_job_holds(const char *box);
void keeper_cancel_job(const char *name);
void keeper_cancel_snap(const char *box);
/* A child of ours ended: true if it was a job. What follows from it is done by the next. */
bool keeper_job_reaped(pid_t pid, int status);
/* Takes over what ended jobs made; starts removing trees where there are any to remove. True when
 * no job runs. */
bool keeper_jobs_step(struct keeper *k);
/* Whether trees are being removed: the next start goes on with it. */
bool keeper_is_sweeping(const struct keeper *k);
/* We leave: the first ends them, the second does not wait any longer for what does not end. */
void keeper_cancel_jobs(void);
void keeper_jobs_end(struct keeper *k);

/* serve.c */
void keeper_serve(struct keeper *k, int sock);

/* main.c */
/* Names the cgroups of a state directory; made with it. 0 or -errno. */
int keeper_group_id(int state, uint64_t *ret);
void keeper_reap(void);

#endif
