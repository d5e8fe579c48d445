/* SPDX-License-Identifier: Apache-2.0 */
/* The users of a tenant, with what they really use and what is reserved for them. */
#ifndef LODGE_PROJECT_USER_LIST_H
#define LODGE_PROJECT_USER_LIST_H

#include "engine/engine.h"

enum user_sort { USER_SORT_DISK, USER_SORT_MEMORY, USER_SORT_CPU, USER_SORT_ACTIVE, USER_SORT_ID };

struct user_use {
	struct store_user_row rec;
	unsigned running; /* sandboxes */
	uint64_t memory_bytes, disk_bytes; /* measured */
	int64_t cpu_day_ms; /* of sandboxes that ran within the last 24 hours or run now */
};

struct user_list_query {
	const char *id; /* only this user; NULL: any */
	const char *text; /* part of the id, name or email; NULL: any */
	enum user_sort sort;
	bool ascending;
	unsigned limit; /* 1..STORE_PAGE_MAX */
};

struct user_use_list {
	struct user_use *items; /* owned */
	size_t count;
	int64_t total; /* that match */
	uint64_t disk_bytes; /* of all that match */
};
void user_use_list_fini(struct user_use_list *l);

/* Reads: takes no lock and never writes. Sorts the first STORE_USERS_MAX users. */
int user_list(struct engine *e, const struct caller *caller, const struct user_list_query *q,
	      struct user_use_list *ret, struct err *err);

#endif
