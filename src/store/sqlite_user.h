/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_STORE_SQLITE_USER_H
#define LODGE_STORE_SQLITE_USER_H

#include "store/sqlite_db.h"

/* store_user_put() inside the caller's transaction. */
int sqlite_user_put(struct store *db, const struct store_user *u, struct err *err);

#endif
