/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the engine and lodge-keeper: SOCK_SEQPACKET, one fixed-size struct each way,
 * with file descriptors attached. The keeper answers every request with exactly one struct
 * keeper_reply, in order (KEEPER_LIST: one per item, then one with an empty id). No message names a
 * path of the host: directories are ids below the keeper's own home, or descriptors that the caller
 * opened. */
#ifndef LODGE_WIRE_KEEPER_PROTO_H
#define LODGE_WIRE_KEEPER_PROTO_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/limits.h"

#define KEEPER_VERSION 1u
#define KEEPER_FD 3 /* the keeper's end of the socket */
/* Templates of this prefix are layers of images, named by their content. Other templates stand on
 * them; the last one that is dropped takes them along. */
#define KEEPER_IMAGE_PREFIX "sha256."

enum {
	KEEPER_ID_SIZE = 64, /* [a-z0-9][a-z0-9._-]*, NUL-terminated, rest zero */
	KEEPER_PATH_SIZE = 256,
	KEEPER_LAYERS_MAX = 32, /* of one sandbox, without its template */
	KEEPER_TEMPLATE_DEPTH = 16, /* templates on top of each other, as the layers of an image */
	KEEPER_BINDS_MAX = 8,
	KEEPER_SLOTS_MAX = 1024, /* of the pool */
	KEEPER_MSG_SIZE = 192,
};

/* How many descriptors come with a request. */
enum keeper_fds {
	KEEPER_FDS_NONE,
	KEEPER_FDS_ONE,
	KEEPER_FDS_BINDS, /* create.nbinds */
};

/* All messages, one row each. This table defines the numbers on the wire, what the keeper checks
 * before it calls a handler (keeper_proto.c) and the handler handle_NAME() (keeper/dispatch.c): a
 * row without a handler or without a check for its body does not compile.
 *
 *   id    the request names a sandbox; without it, the id must be empty
 *   body  the member of the request that is used: check_BODY() judges it
 *   fds   the descriptors of the request, enum keeper_fds without its prefix
 *   reply_fd  a successful reply carries one descriptor
 *
 * To add a message: a row at the end, its handler, and the call of the client (src/sandbox). */
/* clang-format off */
#define KEEPER_OPS(ROW)                                                                            \
	/*  operation             no  name           id  body      fds   reply_fd */               \
	ROW(KEEPER_HELLO,          1, hello,          0, nothing,  NONE,  0)                       \
	ROW(KEEPER_CREATE,         2, create,         1, create,   BINDS, 1)                       \
	ROW(KEEPER_CONNECT,        3, connect,        1, nothing,  NONE,  1)                       \
	ROW(KEEPER_DESTROY,        4, destroy,        1, nothing,  NONE,  0)                       \
	ROW(KEEPER_FREEZE,         5, freeze,         1, nothing,  NONE,  0)                       \
	ROW(KEEPER_THAW,           6, thaw,           1, nothing,  NONE,  0)                       \
	ROW(KEEPER_STATS,          7, stats,          1, nothing,  NONE,  0)                       \
	ROW(KEEPER_LIMITS,         8, limits,         1, limits,   NONE,  0)                       \
	ROW(KEEPER_LIST,           9, list,           0, nothing,  NONE,  0)                       \
	ROW(KEEPER_POOL,          10, pool,           0, pool,     NONE,  0)                       \
	ROW(KEEPER_TEMPLATE_SEAL, 11, template_seal,  1, template, NONE,  0)                       \
	ROW(KEEPER_TEMPLATE_DROP, 12, template_drop,  0, template, NONE,  0)                       \
	ROW(KEEPER_STOP,          13, stop,           1, nothing,  NONE,  0)                       \
	ROW(KEEPER_SEAL,          14, seal,           1, layer,    NONE,  0)                       \
	ROW(KEEPER_SNAP,          15, snap,           1, layer,    NONE,  0)                       \
	ROW(KEEPER_LAYER_DROP,    16, layer_drop,     0, layer,    NONE,  0)                       \
	ROW(KEEPER_LAYER_SYNC,    17, layer_sync,     0, layer,    NONE,  0)                       \
	ROW(KEEPER_LAYER_MERGE,   18, layer_merge,    0, layers,   NONE,  0)                       \
	ROW(KEEPER_LAYER_EXPORT,  19, layer_export,   0, layers,   ONE,   0)                       \
	ROW(KEEPER_JOB,           20, job,            0, layer,    NONE,  0)                       \
	ROW(KEEPER_EXIT,          21, exit,           1, nothing,  NONE,  0)                       \
	ROW(KEEPER_DISK,          22, disk,           0, disk,     NONE,  0)                       \
	ROW(KEEPER_SWEEP,         23, sweep,          0, nothing,  NONE,  0)
/* clang-format on */

/* What they do:
 *
 *   hello          opens the disk storage -> features, msg: why KEEPER_HAS_DISK_LIMIT is missing
 *   create         -> source, pid, fd: a connection to lodge-init. ERR_UNAVAILABLE with EBUSY while
 *                  an earlier sandbox of that id is being removed.
 *   connect        -> pid, fd: a new connection to lodge-init, for adoption
 *   destroy        -> found. Works in every state. An unknown id is success with found = 0.
 *   freeze, thaw
 *   stats          -> stats
 *   limits         changes the limits of a running sandbox
 *   list           -> one reply for each running sandbox, each kept file tree and each layer
 *   pool           resizes the pool -> pool
 *   template_seal  ends the sandbox; its files become the template, on top of the one it had
 *   template_drop  also drops the layers of images below it that nothing else uses
 *   stop           kills every process -> found. An unknown id is success with found = 0.
 *   seal           the files of a stopped sandbox become the layer -> whole. ERR_UNAVAILABLE with
 *                  EBUSY while its processes are dying. Repeating it after success is success.
 *   snap           the layer becomes a copy of the files of a kept sandbox, which is frozen
 *                  meanwhile -> whole, job. If job is RUNNING, poll with `job`.
 *   layer_drop     A layer that does not exist is success.
 *   layer_sync     starts a job that makes the layer durable and measures it -> job
 *   layer_merge    starts a job that makes one layer of several -> job
 *   layer_export   starts a job that writes the named layers, merged, as a tar into the
 *                  descriptor -> job. layer.name is only the name of the job.
 *   job            -> job. The keeper reports the end of a job once and then forgets it.
 *   exit           -> exit: whether lodge-init of this sandbox runs, or how it ended
 *   disk           sets how much of the host's disk stays free -> disk. A volume that turned
 *                  read-only is mounted again, which ends the sandboxes on it.
 *   sweep          removes what killed one-shot keepers and killed builds of templates left
 *
 * The files of a sandbox created with `keep` outlive it: only destroy removes them, and seal makes
 * them a layer. A layer never changes. */
enum keeper_op {
#define KEEPER_OP_NUMBER(op, number, name, id, body, fds, reply_fd) op = number,
	KEEPER_OPS(KEEPER_OP_NUMBER)
#undef KEEPER_OP_NUMBER
		KEEPER_OP_MAX,
};

/* Names of running jobs are unique. A job runs in a child process and ends with the keeper. The
 * layer that it makes appears complete or not at all. */
enum keeper_job_state {
	KEEPER_JOB_NONE, /* unknown, or its end was already reported */
	KEEPER_JOB_RUNNING,
	KEEPER_JOB_DONE,
	KEEPER_JOB_FAILED, /* see code, sys and msg of the reply */
};

struct keeper_job {
	uint32_t state, pad;
	uint64_t bytes; /* size of the layer, if the job copied or measured it; else 0 */
};

/* KEEPER_LIST: what a reply names. */
enum keeper_what {
	KEEPER_IS_SANDBOX = 1, /* a running sandbox */
	KEEPER_IS_FILES, /* the files of a kept sandbox that has ended */
	KEEPER_IS_LAYER,
};

enum keeper_store {
	KEEPER_STORE_MEMORY = 1, /* tmpfs: ends with the sandbox and counts against its memory */
	KEEPER_STORE_DISK, /* below the home: a btrfs subvolume or a plain directory */
};

enum keeper_class {
	KEEPER_CLASS_USER = 0, /* no capability at all, no_new_privs */
	KEEPER_CLASS_ROOT, /* root inside, with the capabilities listed in SECURITY.md */
};

/* KEEPER_HELLO: what this keeper can enforce. */
enum keeper_feature {
	KEEPER_HAS_ROOT = 1 << 0, /* runs as root: each sandbox has its own uid range */
	KEEPER_HAS_CGROUP = 1 << 1, /* memory, cpu and pids limits are enforced */
	KEEPER_HAS_KILL = 1 << 2, /* cgroup.kill: all processes of a sandbox end at once */
	KEEPER_HAS_DISK_LIMIT = 1 << 3, /* disk limits of KEEPER_STORE_DISK are enforced */
	KEEPER_HAS_CGROUP_V2 = 1 << 4, /* the v2 tree has the controllers */
};

/* keeper_create.demand: refuse to create the sandbox unless these limits can be enforced. */
enum keeper_demand {
	KEEPER_DEMAND_CGROUP = 1 << 0,
	KEEPER_DEMAND_DISK = 1 << 1,
	KEEPER_DEMAND_INODES = 1 << 2, /* on disk nothing enforces it */
};

struct keeper_bind { /* of the n-th attached fd: a directory that the caller opened */
	uint32_t writable;
	char path[KEEPER_PATH_SIZE]; /* absolute, inside the sandbox */
};

struct keeper_create {
	char template[KEEPER_ID_SIZE]; /* "host", "empty", or a sealed template */
	char hostname[KEEPER_ID_SIZE];
	struct limits limits;
	uint32_t store, class, demand;
	uint32_t uid, gid; /* of the guest user inside; the default is 1000 */
	uint32_t no_pool; /* do not use the pool (benchmarks) */
	uint32_t keep; /* disk store: the files stay when the sandbox ends */
	uint32_t take; /* the topmost layer becomes the writable one, because nothing else uses
			  it. If the create fails, it becomes a layer again. */
	uint32_t nlayers;
	char layers[KEEPER_LAYERS_MAX][KEEPER_ID_SIZE]; /* above the template, topmost first */
	uint32_t nbinds;
	struct keeper_bind binds[KEEPER_BINDS_MAX];
	char workdir[KEEPER_PATH_SIZE]; /* created and given to the guest if missing; or empty */
};

struct keeper_pool {
	uint32_t min, target, max; /* all 0: no pool */
	uint32_t kept; /* rooted slots are for sandboxes with `keep` */
	uint32_t age_ms; /* replace slots older than this; 0: never */
};

struct keeper_disk_opts {
	uint64_t reserve_bytes; /* 0: the default */
};

struct keeper_layer {
	char name[KEEPER_ID_SIZE];
	uint32_t nfrom;
	char from[KEEPER_LAYERS_MAX][KEEPER_ID_SIZE]; /* topmost first */
};

struct keeper_request {
	uint32_t version, op;
	char id[KEEPER_ID_SIZE]; /* the sandbox */
	union {
		struct keeper_create create;
		struct limits limits;
		struct keeper_pool pool;
		struct keeper_disk_opts disk;
		char template[KEEPER_ID_SIZE];
		struct keeper_layer layer;
	};
};

struct keeper_stats {
	uint64_t memory_bytes, memory_peak_bytes, oom_kills;
	uint64_t cpu_us;
	uint64_t pids, pids_denied; /* with lodge-init and a spare shell; forks that were refused */
	uint64_t disk_bytes; /* in use; UINT64_MAX: unknown */
	uint64_t disk_full; /* 1: a write would fail with ENOSPC or EDQUOT */
	uint64_t pids_peak; /* this and the fields below: UINT64_MAX: unknown */
	uint64_t io_read_bytes, io_write_bytes; /* of block devices */
};

enum keeper_exit_state {
	KEEPER_EXIT_NONE, /* it runs, or is about to end */
	KEEPER_EXIT_KNOWN,
	KEEPER_EXIT_UNKNOWN, /* an earlier keeper started it, so its status went elsewhere */
	KEEPER_EXIT_VOLUME, /* the keeper ended it because its volume had turned read-only */
};

struct keeper_exit {
	uint32_t state; /* enum keeper_exit_state */
	int32_t status; /* of waitpid(2), if known */
	uint32_t oom, pad; /* 1: the kernel killed it because memory ran out */
};

struct keeper_pool_state {
	uint32_t ready, min, target, max;
	uint64_t hits, misses;
};

struct keeper_disk {
	uint64_t free_bytes, total_bytes; /* of the host's file system */
	uint64_t reserve_bytes;
	uint64_t room_bytes; /* what sandboxes can still write */
	uint64_t volume_bytes, volume_free_bytes; /* 0: the files are not in a volume */
	uint32_t reserved; /* 1: all space of the volume is allocated on the host */
	uint32_t failed; /* 1: the volume is not usable at the moment */
};

struct keeper_reply {
	uint32_t version, op;
	uint32_t code; /* enum err_code; ERR_NONE = success */
	int32_t sys; /* errno of the cause, or 0 */
	char msg[KEEPER_MSG_SIZE]; /* begins with the step that failed */
	char id[KEEPER_ID_SIZE];
	int32_t pid; /* of lodge-init, on the host */
	uint32_t features; /* HELLO */
	uint32_t source; /* CREATE: enum keeper_source */
	uint32_t found; /* DESTROY, STOP */
	uint32_t what; /* LIST: enum keeper_what */
	uint32_t whole; /* SEAL, SNAP: the layer does not need the layers below it */
	union {
		struct keeper_job job;
		struct keeper_stats stats;
		struct keeper_pool_state pool;
		struct keeper_exit exit;
		struct keeper_disk disk;
	};
};

enum keeper_source { KEEPER_SOURCE_COLD = 1, KEEPER_SOURCE_POOL };

bool keeper_id_is_valid(const char id[KEEPER_ID_SIZE]);
/* A uid or gid that commands of a sandbox may have. */
bool keeper_user_is_valid(uint32_t id);
bool keeper_is_image_layer(const char *template);
/* An absolute path without empty, "." or ".." parts, NUL-terminated within KEEPER_PATH_SIZE. */
bool keeper_path_is_valid(const char path[KEEPER_PATH_SIZE]);

/* The name in KEEPER_OPS, or NULL for a number that is none. */
const char *keeper_op_name(uint32_t op);
/* Whether a successful reply carries a descriptor. */
bool keeper_op_returns_fd(uint32_t op);

/* NULL if the bytes are one well-formed request, else what is wrong with them. */
const char *keeper_request_problem(const void *bytes, size_t len, size_t nfds);

#endif
