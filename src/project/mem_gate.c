/* SPDX-License-Identifier: Apache-2.0 */
#include "project/mem_gate.h"

enum { MEM_GATE_BYTES = 1 << 20 }; /* less needs no ticket */

void mem_gate_enter(struct engine *e, struct gate_ticket *t, uint64_t bytes)
{
	if (!t->gate && bytes > MEM_GATE_BYTES)
		gate_enter(&e->memory_gate, t, NULL, NULL);
}
