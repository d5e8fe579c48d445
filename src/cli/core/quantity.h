/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes on a command line: they need a unit, because "--idle 5" may mean seconds to one
 * reader and minutes to another. Only 0 needs none. */
#ifndef LODGE_CLI_CORE_QUANTITY_H
#define LODGE_CLI_CORE_QUANTITY_H

#include <stdint.h>

#include "base/err.h"

int quantity_ms(const char *option, const char *text, uint64_t *ret, struct err *err);
int quantity_bytes(const char *option, const char *text, uint64_t *ret, struct err *err);

#endif
