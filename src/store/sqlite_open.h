/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a database: locking, integrity checks, migration of older schemas. */
#ifndef LODGE_STORE_SQLITE_OPEN_H
#define LODGE_STORE_SQLITE_OPEN_H

#include "store/sqlite_db.h"

/* store_open_sqlite() with a given list of schema files instead of the built-in one. */
int sqlite_open(const char *path, const char *socket, const char *const *schema, struct store **ret,
		struct err *err);

/* Reconnects to the same file after an I/O error, with the checks of the first open. At most one
 * attempt per second: ERR_UNAVAILABLE until then, and if it fails. */
int sqlite_reopen(struct store *db, struct err *err);

/* Locks `<path>.owner` and writes this process into it. The lock lasts as long as the descriptor is
 * open. If another process holds it, ERR_CONFLICT names that process and its socket. */
int sqlite_owner_take(const char *path, const char *socket, int *ret, struct err *err);

/* Creates a database of the newest schema, completely or not at all. */
int sqlite_make(const char *path, const char *const *schema, struct err *err);
/* Reads the schema version. Rejects a newer one and files of other programs. */
int sqlite_identify(struct store *db, const char *const *schema, int *ret_version, struct err *err);
/* Copies an older database to `<path>.v<its version>`, then migrates it. */
int sqlite_migrate(struct store *db, const char *const *schema, int version, struct err *err);

#endif
