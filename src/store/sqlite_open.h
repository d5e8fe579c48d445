/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a database: who may, what is checked, what brings an older one up to date. */
#ifndef LODGE_STORE_SQLITE_OPEN_H
#define LODGE_STORE_SQLITE_OPEN_H

#include "store/sqlite_db.h"

/* store_open_sqlite() with another list of schema files than the built-in one. */
int sqlite_open(const char *path, const char *socket, const char *const *schema, struct store **ret,
		struct err *err);

/* After an I/O error: the same file by a new connection, checked as at the first opening. Not tried
 * more often than once a second: until then, and if it fails, ERR_UNAVAILABLE. */
int sqlite_reopen(struct store *db, struct err *err);

/* The lock on `<path>.owner`, which also says whose it is: an fd, open as long as it is held. A
 * lock held by another is ERR_CONFLICT, and the sentence names its process and socket. */
int sqlite_owner_take(const char *path, const char *socket, int *ret, struct err *err);

/* A new database of the newest schema, in place whole or not at all. */
int sqlite_make(const char *path, const char *const *schema, struct err *err);
/* The version of its schema. Refuses what is newer or not ours. */
int sqlite_identify(struct store *db, const char *const *schema, int *ret_version, struct err *err);
/* Copies an older one to `<path>.v<its version>` and brings it up to date. */
int sqlite_migrate(struct store *db, const char *const *schema, int version, struct err *err);

#endif
