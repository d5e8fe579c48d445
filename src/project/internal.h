/* SPDX-License-Identifier: Apache-2.0 */
/* Projects from inside, for the files that make up project/project.h. */
#ifndef LODGE_PROJECT_INTERNAL_H
#define LODGE_PROJECT_INTERNAL_H

#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"

enum { MEM_GATE_BYTES = 1 << 20 }; /* smaller amounts need no place in the memory gate */

#endif
