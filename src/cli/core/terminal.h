/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal, for commands that have a terminal in the sandbox. */
#ifndef LODGE_CLI_CORE_TERMINAL_H
#define LODGE_CLI_CORE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raw mode until terminal_restore() or exit. False: fd is not a terminal. */
bool terminal_raw(int fd);
void terminal_restore(void);
/* 24 x 80 if unknown. */
void terminal_size(uint32_t *rows, uint32_t *cols);
/* Removes what a terminal sends in reply to queries (position, type, colours) and keeps keys.
 * Returns the new length. */
size_t terminal_strip_reports(char *bytes, size_t len);
/* The end of a pipe, typed: ctrl-d means end of file only at the start of a line. Returns the
 * number of keys. */
enum { TERMINAL_END_KEYS = 2 };
size_t terminal_end_keys(bool in_line, char ret[TERMINAL_END_KEYS]);
/* Every reader of a pipe sees its end, but ctrl-d ends only one read, and is lost while a shell
 * sets up its terminal. So it is sent again and again: milliseconds until then, after the last
 * pause (0: none yet). */
int terminal_end_pause(int last_ms);
/* Standard input is /dev/null: there is nothing to send, not even its end. */
bool terminal_no_input(void);

#endif
