/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_LOOKUP_H
#define LODGE_EXEC_EXEC_LOOKUP_H

#include "machine/exec_record.h"

/* The sandbox of this session if it is connected, counted; NULL: none. Needs nobody's turn. */
struct machine *machine_find(struct engine *e, const char *session);

#endif
