/* SPDX-License-Identifier: Apache-2.0 */
/* Projects from inside, for the files that make up project/project.h. */
#ifndef LODGE_PROJECT_INTERNAL_H
#define LODGE_PROJECT_INTERNAL_H

#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"

/* ---- order ------------------------------------------------------------------------------- */

/* What changes where a user is happens one after the other, in the order in which it was asked:
 * the last one wins. A turn (name_lock) does not keep an order. */
struct user_queue_ticket {
	struct user_queue_ticket *next;
	struct engine *engine;
	char tenant[STORE_NAME], user[STORE_USER];
};

/* Before this many bytes of files come into memory; waits while there are enough of others. Nobody
 * joins a line in there, and what a guest could hold up has a deadline. *is_in says whether it
 * counts: begin with false. */
enum { MEM_GATE_BYTES = 1 << 20 };

#endif
