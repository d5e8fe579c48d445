/* SPDX-License-Identifier: Apache-2.0 */
/* What a command ran into, in one sentence on standard error: of lodge run and lodge exec. */
#ifndef LODGE_CLI_CORE_LIMIT_NOTE_H
#define LODGE_CLI_CORE_LIMIT_NOTE_H

#include <stdint.h>

#include "wire/limits.h"

/* By its name in the interface, which people can look up; a name that nobody knows is passed over.
 * A limit or a time of 0 is not known, and not told. */
void limit_note_print(const char *name, const struct limits *limits, uint32_t timeout_ms);

#endif
