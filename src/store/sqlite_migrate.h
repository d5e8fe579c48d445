/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_STORE_SQLITE_MIGRATE_H
#define LODGE_STORE_SQLITE_MIGRATE_H

#include "store/sqlite_db.h"

/* Creates a database of the newest schema, completely or not at all. */
int sqlite_make(const char *path, const char *const *schema, struct err *err);
/* Reads the schema version. Rejects a newer one and files of other programs. */
int sqlite_identify(struct store *db, const char *const *schema, int *ret_version, struct err *err);
/* Copies an older database to `<path>.v<its version>`, then migrates it. */
int sqlite_migrate(struct store *db, const char *const *schema, int version, struct err *err);

#endif
