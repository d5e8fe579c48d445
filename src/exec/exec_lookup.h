/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_LOOKUP_H
#define LODGE_EXEC_EXEC_LOOKUP_H

#include "machine/exec_record.h"

/* Returns a reference to the connected sandbox of this session; NULL: none. Takes no session lock.
 */
struct machine *machine_find(struct engine *e, const char *session);

#endif
