/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space for the deletions on a full disk. Guests that fill the disk take every block that is
 * free, so the reserve is space of the write-ahead log itself, allocated ahead of its end: writes
 * there need no free block. Other writes are refused before they would use it. */
#ifndef LODGE_STORE_SQLITE_RESERVE_H
#define LODGE_STORE_SQLITE_RESERVE_H

#include "store/sqlite_db.h"

/* After the database was opened. */
int sqlite_reserve_start(struct store *db, struct err *err);
/* Before a write: -1 with ENOSPC if it might use what this thread must leave. */
int sqlite_reserve_check(struct store *db, struct err *err);

#endif
