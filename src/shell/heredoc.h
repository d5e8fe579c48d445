/* SPDX-License-Identifier: Apache-2.0 */
/* Redirections and here-documents. */
#ifndef LODGE_SHELL_HEREDOC_H
#define LODGE_SHELL_HEREDOC_H

#include "shell/parser.h"

/* 1: a redirection was read. */
int read_redirection(struct parser *p);
/* Reads the bodies of pending here-documents after a newline. */
int read_heres(struct parser *p);
/* Reports here-documents without a body: where they end, and so what is a command, is unknown. */
int note_heres(struct parser *p);

#endif
