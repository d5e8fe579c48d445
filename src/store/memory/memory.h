/* SPDX-License-Identifier: Apache-2.0 */
/* A store of plain arrays. Finding is a walk: it is for tests and small numbers. */
#ifndef LODGE_STORE_MEMORY_MEMORY_H
#define LODGE_STORE_MEMORY_MEMORY_H

#include "base/array.h"
#include "store/columns.h"
#include "store/store.h"

struct mem_binding {
	char tenant[STORE_NAME];
	struct store_binding key;
	char session[STORE_ID];
};

struct mem_hold {
	char layer[STORE_ID], holder[STORE_KEY];
};

struct mem_files {
	int64_t fragment; /* its seq */
	struct store_file_list list;
};

struct mem_cpu {
	char tenant[STORE_NAME], user[STORE_USER];
	int64_t ms;
};

/* Records in the order they were added. */
struct mem_table {
	const struct columns *shape;
	char *rows;
	size_t count;
	int64_t seq; /* the last given */
};

struct mem {
	struct store store; /* first: a pointer to it is a pointer to this */
	int64_t changes;
	struct mem_table session, binding, tombstone, tombstone_key, layer, hold, snapshot, exec,
		once, event, project, fragment, files, user, member, key, policy, quota, cpu,
		environment;
};

static inline struct mem *mem_of(struct store *st)
{
	return (struct mem *)st;
}

/* A text member that must have this value; NULL: any. */
struct mem_match {
	size_t offset;
	const char *value;
};
#define MEM_IS(type, member, value)                                                                \
	{                                                                                          \
		offsetof(struct type, member), value                                               \
	}
/* Fills two arguments. */
#define MEM_MATCH(...)                                                                             \
	(const struct mem_match[]){ __VA_ARGS__ },                                                 \
		ARRAY_LEN(((const struct mem_match[]){ __VA_ARGS__ }))

/* The first matching row at or after *at, and where it is; NULL if there is none. */
void *mem_find(const struct mem_table *t, size_t *at, const struct mem_match *match, size_t n);
/* The first of all. */
void *mem_first(const struct mem_table *t, const struct mem_match *match, size_t n);
int64_t mem_count(const struct mem_table *t, const struct mem_match *match, size_t n);

/* A copy at the end; NULL without memory. */
void *mem_add(struct mem *m, struct mem_table *t, const void *record, struct err *err);
/* The same for a record whose first member is its number, which is given. */
void *mem_add_numbered(struct mem *m, struct mem_table *t, const void *record, int64_t *ret_seq,
		       struct err *err);
void mem_drop(struct mem *m, struct mem_table *t, size_t at);
/* Drops what matches; the number of rows. */
size_t mem_drop_all(struct mem *m, struct mem_table *t, const struct mem_match *match, size_t n);
/* Takes back what was added beyond `count`. */
void mem_cut(struct mem_table *t, size_t count);

/* A copy for the caller. NOT_FOUND, with `what` and `name`, if row is NULL. */
int mem_give(const struct mem_table *t, const void *row, void *ret, const char *what,
	     const char *name, struct err *err);

typedef bool mem_filter(struct mem *m, const void *row, const void *arg);
/* Copies of one page of what matches and passes `filter` (may be NULL), for records whose first
 * member is their number. */
int mem_page(struct mem *m, const struct mem_table *t, struct store_page page,
	     const struct mem_match *match, size_t n, mem_filter *filter, const void *arg,
	     void **ret_items, size_t *ret_count, int64_t *ret_next, struct err *err);

extern const struct store_session_ops memory_session_ops;
extern const struct store_tombstone_ops memory_tombstone_ops;
extern const struct store_layer_ops memory_layer_ops;
extern const struct store_snapshot_ops memory_snapshot_ops;
extern const struct store_exec_ops memory_exec_ops;
extern const struct store_once_ops memory_once_ops;
extern const struct store_event_ops memory_event_ops;
extern const struct store_project_ops memory_project_ops;
extern const struct store_fragment_ops memory_fragment_ops;
extern const struct store_user_ops memory_user_ops;
extern const struct store_team_ops memory_team_ops;
extern const struct store_key_ops memory_key_ops;
extern const struct store_policy_ops memory_policy_ops;
extern const struct store_quota_ops memory_quota_ops;
extern const struct store_environment_ops memory_environment_ops;

int memory_user_put(struct mem *m, const struct store_user *u, struct err *err);

#endif
