/* SPDX-License-Identifier: Apache-2.0 */
/* The store, locked: its calls never overlap. */
#ifndef LODGE_ENGINE_STORE_LOCK_H
#define LODGE_ENGINE_STORE_LOCK_H

#include "store/store.h"

struct engine;

struct store *store_lock(struct engine *e) __attribute__((returns_nonnull));
void store_unlock(struct engine *e);
#define WITH_STORE(e, st) for (struct store *st = store_lock(e); st; store_unlock(e), st = NULL)
/* The result of one call with the store: STORE_CALL(e, st, store_user_put(st, &u, err)). */
#define STORE_CALL(e, st, call)                                                                    \
	({                                                                                         \
		struct store *st = store_lock(e);                                                  \
		__typeof__(call) result_ = (call);                                                 \
		store_unlock(e);                                                                   \
		result_;                                                                           \
	})
/* For state that a power loss ends anyway: writes are not synced, see store_relax(). */
struct store *store_lock_relaxed(struct engine *e) __attribute__((returns_nonnull));
void store_unlock_relaxed(struct engine *e);
#define WITH_STORE_RELAXED(e, st)                                                                  \
	for (struct store *st = store_lock_relaxed(e); st; store_unlock_relaxed(e), st = NULL)

#endif
