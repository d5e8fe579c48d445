/* SPDX-License-Identifier: Apache-2.0 */
/* Explains on standard error which limit a command reached, for lodge run and lodge exec. */
#ifndef LODGE_CLI_CORE_LIMIT_NOTE_H
#define LODGE_CLI_CORE_LIMIT_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/limits.h"

/* name: as in the API, "LIMIT_MEMORY"; unknown names are ignored. A limit of 0 is unknown. */
void limit_note_print(const char *name, const struct limits *limits, uint32_t timeout_ms);

#endif
