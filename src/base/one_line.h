/* SPDX-License-Identifier: Apache-2.0 */
/* A text of whatever origin as one line for people. */
#ifndef LODGE_BASE_ONE_LINE_H
#define LODGE_BASE_ONE_LINE_H

#include <stddef.h>

/* The first line that says something, without tags of HTML and control characters, blanks made
 * single, cut to size with "..." at its end. ret may be text. size is at least 8. */
void one_line_print(const char *text, char *ret, size_t size);

#endif
