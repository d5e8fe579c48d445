/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal while a command has a terminal of its own inside. */
#ifndef LODGE_CLI_CORE_TERMINAL_H
#define LODGE_CLI_CORE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raw from now on, until terminal_restore() (also at exit). False: fd is no terminal. */
bool terminal_raw(int fd);
void terminal_restore(void);
/* 24 x 80 where nobody knows. */
void terminal_size(uint32_t *rows, uint32_t *cols);
/* Takes out what a terminal says of itself because a program asked (its position, kind, colours);
 * keys stay. The new length. */
size_t terminal_strip_reports(char *bytes, size_t len);
/* Standard input is /dev/null: not even its end is worth passing on. */
bool terminal_no_input(void);

#endif
