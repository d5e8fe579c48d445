/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_MEM_GATE_H
#define LODGE_PROJECT_MEM_GATE_H

#include "project/internal.h"

void mem_gate_enter(bool *is_in, uint64_t bytes);
void mem_gate_leave(bool *is_in);

#endif
