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
	struct sandbox_parts parts;
	bool rooted; /* has the usual root, is bound and armed */
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
	int sandboxes, trash; /* state/sandboxes, state/trash */
	int scratch; /* mount points of our own mount namespace */
	uint32_t features; /* KEEPER_HAS_* */
	struct cgroup_host cgroups;
	struct sandbox_spawn_host spawn;
	struct storage storage;
	struct idmap_host idmap_host;
	struct root_source roots;
	struct sandbox_table table;
	size_t trash_count;
	/* made ahead */
	struct sandbox_parts parts[KEEPER_PARTS_MAX];
	size_t nparts, parts_target;
	struct slot *slots[KEEPER_SLOTS_MAX];
	size_t nslots;
	struct keeper_pool pool;
	uint64_t hits, misses, serial;
};

/* create.c */
int sandbox_create(struct keeper *k, const char *id, const struct keeper_create *c, const int *dirs,
		   struct keeper_reply *reply, int *ret_fd, struct err *err);
int init_socket_connect(struct keeper *k, const char *id, int *ret_fd, struct err *err);
int init_socket_bind(struct keeper *k, const struct keeper_create *c, int fd, struct err *err);
int sandbox_create_root(struct keeper *k, const char *id, const struct keeper_create *c,
			const int *dirs, const struct idmap *idmap, struct rootfs *ret,
			struct err *err);
int init_socket_listen(int dir);

/* trash.c */
/* SIGKILL, if it is still the process we started. */
void sandbox_end_kill_init(const struct sandbox_record *sb);
int sandbox_end_destroy(struct keeper *k, struct sandbox_record *sb, struct err *err);
/* As destroy, but files that are kept stay. */
int sandbox_end_stop(struct keeper *k, struct sandbox_record *sb, struct err *err);
/* Of a kept sandbox that does not live any more; *ret_found is set when there were any. */
int sandbox_end_destroy_files(struct keeper *k, const char *id, bool *ret_found, struct err *err);
/* Whether it is in the trash: its processes may still be going. */
bool sandbox_end_is_pending(const struct keeper *k, const char *id);
/* Goes on with what is being removed; true when nothing is left to do. */
bool sandbox_end_empty_trash(struct keeper *k);
/* Removes what a create that failed left in sandboxes/ID. */
void sandbox_end_discard(struct keeper *k, struct sandbox_record *sb);

/* parts.c */
/* Unique among all keepers that ever were: an earlier one's slots and groups may live on. */
unsigned long long slot_parts_serial(struct keeper *k);
/* `inner`: the one id inside, where only one is mapped. The limits are in force. */
int slot_parts_take(struct keeper *k, uid_t inner, const struct limits *limits,
		    struct sandbox_parts *ret, struct err *err);
/* From the usual limits, with which everything ahead is made, to these. */
int slot_parts_set_limits(struct keeper *k, const char *group, const struct limits *limits,
			  bool settled, struct err *err);
/* Makes one set ahead; false when none is wanted. */
bool slot_parts_make_ahead(struct keeper *k);
/* Of a slot that runs: keeps only what its claim still needs. Every descriptor we hold is copied by
 * the next clone. */
void slot_parts_trim(struct sandbox_parts *p);
void slot_parts_close(struct sandbox_parts *p); /* used up: what is left are our descriptors */
void slot_parts_drop(struct keeper *k, struct sandbox_parts *p); /* never used */

/* pool.c */
/* One that fits, or NULL. */
struct slot *slot_pool_take(struct keeper *k, const struct keeper_create *c);
void slot_pool_free(struct keeper *k, struct slot *s, bool discard);
bool slot_pool_is_slot(const char *id);
int slot_pool_resize(struct keeper *k, const struct keeper_pool *pool, struct err *err);
/* Whether the next one might find nothing made ahead. */
bool slot_pool_is_short(const struct keeper *k);
/* After a child was reaped: those that are gone do not wait to be found so. Whether any was. */
bool slot_pool_drop_dead(struct keeper *k);
/* Until something has to be made anew; -1: nothing has. */
int slot_pool_next_expiry_ms(const struct keeper *k);
/* Makes one thing ahead, if any is wanted; false when nothing is. */
bool slot_pool_fill_one(struct keeper *k);

/* adopt.c */
int sandbox_adopt_all(struct keeper *k, struct err *err);
/* Ends whatever the one-shot keepers left that died before they could clean up. */
void sandbox_adopt_sweep_oneshots(struct keeper *k, const char *own);

/* template.c */
int template_ops_seal(struct keeper *k, struct sandbox_record *sb, const char *name,
		      struct err *err);
int template_ops_drop(struct keeper *k, const char *name, struct err *err);
/* LOCK_SH while a sandbox is made, LOCK_EX while a template goes. An fd to close, or -errno. */
int template_ops_lock(struct keeper *k, int how);

/* layer.c */
/* The files of a stopped sandbox become a layer. */
int layer_ops_seal(struct keeper *k, const char *id, const char *name, struct err *err);
int layer_ops_snap(struct keeper *k, const char *id, const char *name, struct keeper_job *ret,
		   struct err *err);
int layer_ops_drop(struct keeper *k, const char *name, struct err *err);
int layer_ops_sync(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
int layer_ops_merge(struct keeper *k, const struct keeper_layer *l, struct keeper_job *ret,
		    struct err *err);
int layer_ops_export(struct keeper *k, const struct keeper_layer *l, int fd, struct keeper_job *ret,
		     struct err *err);
/* Makes sure that no job reads it any more, or fails with EBUSY. */
int layer_ops_release(struct keeper *k, const char *name, struct err *err);
/* Freezes or thaws because somebody asked for it; an earlier keeper's word is good as well. */
int sandbox_pause(struct keeper *k, struct sandbox_record *sb, bool paused, struct err *err);
/* What dead jobs left, and trees whose removal did not come to an end. */
void layer_ops_sweep(struct keeper *k);

/* job.c */
enum job_kind { JOB_SNAP, JOB_MERGE, JOB_SYNC, JOB_EXPORT };

struct job_spec {
	enum job_kind kind;
	const char *name; /* of the job; of the layer too, where it makes one */
	const char *sandbox; /* JOB_SNAP: the sandbox that is frozen meanwhile; "": none lives */
	char (*from)[KEEPER_ID_SIZE + 4]; /* entries of the store, topmost first */
	size_t nfrom;
	int out; /* JOB_EXPORT */
};
int job_table_start(struct keeper *k, const struct job_spec *spec, struct err *err);
/* Fails when it did; told once. */
int job_table_query(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
/* The same after a moment in which it may end. */
int job_table_await(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
bool job_table_is_running(const char *name);
/* The kind of a job that reads this entry, or -1. */
int job_table_reader(const char *entry);
/* Whether a job holds this sandbox frozen. */
bool job_table_freezes(const char *sandbox);
void job_table_cancel(const char *name);
void job_table_cancel_snap(const char *sandbox);
/* A child of ours ended: true if it was a job. What follows from it is done by the next. */
bool job_table_reaped(pid_t pid, int status);
/* Takes over what ended jobs made; starts removing trees where there are any to remove. True when
 * no job runs. */
bool job_table_step(struct keeper *k);
/* Whether trees are being removed: the next start goes on with it. */
bool job_table_is_sweeping(const struct keeper *k);
/* We leave: the first ends them, the second does not wait any longer for what does not end. */
void job_table_cancel_all(void);
void job_table_end(struct keeper *k);

/* serve.c */
void keeper_serve(struct keeper *k, int sock);

/* main.c */
/* Names the cgroups of a state directory; made with it. 0 or -errno. */
int keeper_cgroup_id(int state, uint64_t *ret);
void keeper_reap(void);

#endif
