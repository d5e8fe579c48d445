/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and lists. */
#ifndef LODGE_SHELL_SHELL_PARSE_H
#define LODGE_SHELL_SHELL_PARSE_H

#include "shell/parser.h"

enum list_end { END_TEXT, END_PAREN, END_BRACE, END_FI, END_DONE, END_CASE };
/* Reads commands up to and including their end; for END_CASE only ";;" and similar ends are
 * consumed. */
int read_list(struct parser *p, enum list_end end, uint32_t opened);
/* Reads a list with its own here-documents. */
int read_nested(struct parser *p, enum list_end end, uint32_t opened);
/* Parses `n` characters of the stack as a text. `expanded`: only its expansions, as within "...".
 */
int read_text(struct parser *p, const char *chars, const uint32_t *offsets, size_t n,
	      bool expanded);

#endif
