/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_TESTS_COUNT_ACTIVE_H
#define LODGE_TESTS_COUNT_ACTIVE_H

#include "session/capacity.h"

static inline unsigned count_active(struct engine *e)
{
	struct capacity_report r;

	capacity_get_report(e, &r);
	return r.active;
}

#endif
