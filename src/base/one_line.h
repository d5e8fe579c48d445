/* SPDX-License-Identifier: Apache-2.0 */
/* Turns text of any origin into one line for people. */
#ifndef LODGE_BASE_ONE_LINE_H
#define LODGE_BASE_ONE_LINE_H

#include <stddef.h>

/* Copies the first line that is not blank, without HTML tags and control characters, with single
 * blanks, and shortened with "..." to fit. `ret` may be `text`. `size` must be at least 8. */
void one_line_print(const char *text, char *ret, size_t size);

#endif
