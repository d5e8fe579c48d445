/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SHELL_SHELL_QUOTE_H
#define LODGE_SHELL_SHELL_QUOTE_H

#include "shell/parser.h"

int read_single(struct parser *p);
int read_ansi(struct parser *p); /* after $' */

#endif
