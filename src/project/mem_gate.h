/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the memory of fragments that are loaded: up to 64 MiB each, and as much again while they
 * are unpacked. */
#ifndef LODGE_PROJECT_MEM_GATE_H
#define LODGE_PROJECT_MEM_GATE_H

#include "engine/internal.h"

/* Before this many bytes of files are loaded into memory: waits while too many others have done so.
 * Small ones pass. *t begins as zeros. A caller that is inside joins no user queue, and gives
 * everything that a guest could delay a deadline. */
void mem_gate_enter(struct engine *e, struct gate_ticket *t, uint64_t bytes);

#endif
