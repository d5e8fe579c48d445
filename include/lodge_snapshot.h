/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: snapshots, forks and rollback. Included by lodge.h. */
#ifndef LODGE_SNAPSHOT_H
#define LODGE_SNAPSHOT_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lodge_snapshot {
	const char *id, *name;
	const char *session; /* "" after lodge_snapshot_import() */
	int64_t generation;
	int64_t bytes; /* 0 until the files are counted, a moment after it is taken */
	int64_t created_at;
};

struct lodge_snapshots {
	struct lodge_snapshot **items;
	size_t count;
	int64_t next;
};

/* name may be NULL. stop not 0: stops the sandbox and resumes it afterwards, instead of copying
 * from the running one. */
int lodge_snapshot_take(struct lodge *l, const struct lodge_ref *ref, const char *name, int stop,
			struct lodge_snapshot **ret);
int lodge_snapshot_get(struct lodge *l, const char *id, struct lodge_snapshot **ret);
/* Lists snapshots, oldest first. ref NULL: all of the tenant. limit 0: 100. */
int lodge_snapshot_list(struct lodge *l, const struct lodge_ref *ref, int64_t after, uint32_t limit,
			struct lodge_snapshots **ret);
int lodge_snapshot_remove(struct lodge *l, const char *id);
/* Exports a snapshot as .tar.zst to a file or pipe; imports one as a snapshot on a template. name
 * may be NULL. */
int lodge_snapshot_export(struct lodge *l, const char *id, int fd);
int lodge_snapshot_import(struct lodge *l, const char *template_name, const char *name, int fd,
			  struct lodge_snapshot **ret);

/* Creates `count` sessions from the files of this one: from a snapshot or, with NULL, from its
 * current files. keys: NULL, or one key per session. Creates all or none. */
int lodge_fork(struct lodge *l, const struct lodge_ref *ref, const char *snapshot, uint32_t count,
	       const struct lodge_ref *keys, struct lodge_sessions **ret);
/* Resets the files to one of its snapshots; a running sandbox is ended and resumed from there. ret
 * may be NULL. */
int lodge_rollback(struct lodge *l, const struct lodge_ref *ref, const char *snapshot,
		   int64_t if_version, struct lodge_session **ret);

#ifdef __cplusplus
}
#endif
#endif
