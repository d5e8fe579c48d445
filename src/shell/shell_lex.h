/* SPDX-License-Identifier: Apache-2.0 */
/* Words, and everything that can be inside of one. */
#ifndef LODGE_SHELL_SHELL_LEX_H
#define LODGE_SHELL_SHELL_LEX_H

#include "shell/parser.h"

bool is_meta(char c);
bool is_name_char(char c);
/* Skips blanks, continued lines and a comment. */
void skip_blanks(struct parser *p);
/* Reads one word at pos onto both stacks. `command`: it may be an assignment. */
int read_word(struct parser *p, bool command);
/* Read an expansion or quotes at `$`, `"` or a backtick. *flags gets the effect on the word. */
int read_dollar(struct parser *p, bool quoted, unsigned *flags);
int read_double(struct parser *p, unsigned *flags);
int read_backtick(struct parser *p, bool quoted);
/* Reads from pos to the end of the source as within double quotes, where " is not special. */
int read_expanded(struct parser *p);
/* Reads arithmetic after "((". 1: it is not arithmetic, or invalid as p->err says. */
int read_arithmetic(struct parser *p);
/* At the second parenthesis of a possible "((". 1: it is not arithmetic, and nothing was read. */
int try_arithmetic(struct parser *p);

#endif
