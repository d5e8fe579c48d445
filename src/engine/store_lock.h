/* SPDX-License-Identifier: Apache-2.0 */
/* The store, locked: its calls never overlap. */
#ifndef LODGE_ENGINE_STORE_LOCK_H
#define LODGE_ENGINE_STORE_LOCK_H

#include <stdbool.h>

#include "store/store.h"

struct engine;

struct store *store_lock(struct engine *e) __attribute__((returns_nonnull));
void store_unlock(struct engine *e);
#define WITH_STORE(e, st) for (struct store *st = store_lock(e); st; store_unlock(e), st = NULL)
/* fn(store, ...) with the lock: the result of one call. */
#define STORE_CALL(e, fn, ...)                                                                     \
	({                                                                                         \
		int r_ = fn(store_lock(e), __VA_ARGS__);                                           \
		store_unlock(e);                                                                   \
		r_;                                                                                \
	})
/* For state that a power loss ends anyway: writes are not synced, see store_relax(). */
struct store *store_lock_relaxed(struct engine *e, bool relaxed) __attribute__((returns_nonnull));
void store_unlock_relaxed(struct engine *e, bool relaxed);
#define STORE_CALL_RELAXED(e, relaxed, fn, ...)                                                    \
	({                                                                                         \
		int r_ = fn(store_lock_relaxed(e, relaxed), __VA_ARGS__);                          \
		store_unlock_relaxed(e, relaxed);                                                  \
		r_;                                                                                \
	})

/* Whether the store works: a call that is under way, of another thread, has not taken too long, and
 * without one an event can be read. Does not wait for others. */
bool store_responds(struct engine *e);

#endif
