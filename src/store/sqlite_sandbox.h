/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_STORE_SQLITE_SANDBOX_H
#define LODGE_STORE_SQLITE_SANDBOX_H

#include "store/sqlite_db.h"
#include "store/store.h"

/* Inside a transaction, before *s is written: records that the sandbox which the store has for this
 * version of the session ended because of s->cause, if *s names another one or `destroyed`. */
int sqlite_sandbox_note_end(struct store *db, const struct store_session *s, bool destroyed,
			    struct err *err);

#endif
