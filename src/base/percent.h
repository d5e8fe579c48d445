/* SPDX-License-Identifier: Apache-2.0 */
/* %41 is A: as paths, queries and names of files come over HTTP. */
#ifndef LODGE_BASE_PERCENT_H
#define LODGE_BASE_PERCENT_H

#include <stdbool.h>

/* In place: it only gets shorter. `plus`: a plus is a space. False: a % without two digits, or a
 * NUL. */
bool percent_decode(char *s, bool plus);

#endif
