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

#endif
