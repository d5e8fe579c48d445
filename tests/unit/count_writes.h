/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_TESTS_COUNT_WRITES_H
#define LODGE_TESTS_COUNT_WRITES_H

#include "engine/store_lock.h"

/* Rows written since the engine was opened; reads do not change it. */
static inline int64_t count_writes(struct engine *e)
{
	int64_t n = 0;

	WITH_STORE(e, st)
	n = store_changes(st);
	return n;
}

#endif
