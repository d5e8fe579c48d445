/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-decoding, for paths, queries and file names in HTTP. */
#ifndef LODGE_BASE_PERCENT_H
#define LODGE_BASE_PERCENT_H

#include <stdbool.h>

/* Decodes in place. `plus`: a plus means a space. False for a % without two hex digits, or for a
 * NUL. */
bool percent_decode(char *s, bool plus);

#endif
