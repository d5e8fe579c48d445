/* SPDX-License-Identifier: Apache-2.0 */
/* What to use instead of options that only docker has. */
#ifndef LODGE_CLI_CORE_OPTION_HINTS_H
#define LODGE_CLI_CORE_OPTION_HINTS_H

#include <stddef.h>

/* option: `len` bytes, with its dashes. NULL: nothing is known about it. */
const char *option_hint(const char *command, const char *option, size_t len);

#endif
