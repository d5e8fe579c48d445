/* SPDX-License-Identifier: Apache-2.0 */
/* Output of commands. Included by api_cmd.h. */
#ifndef LODGE_CLI_CORE_API_PRINT_H
#define LODGE_CLI_CORE_API_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/core/command.h"

/* The answer as JSON, or by `print`. Returns 0, or -1. */
int api_cmd_write(struct api_cmd *a, const json_t *answer, command_print_fn *print,
		  struct err *err);
/* As the command declares it. */
void api_cmd_print_answer(struct api_cmd *a, const json_t *answer);
int api_cmd_write_json(const json_t *answer, struct err *err);
int api_cmd_write_line(const json_t *answer, struct err *err);
/* printf() and a newline; control characters become '?'. A note goes to standard error, after what
 * was printed, and so does a hint, but only if that is a terminal. */
void api_cmd_print_to(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define api_cmd_print(...) api_cmd_print_to(stdout, __VA_ARGS__)
#define api_cmd_note(...) api_cmd_print_to(stderr, __VA_ARGS__)
#define api_cmd_hint(...) (isatty(STDERR_FILENO) ? api_cmd_note(__VA_ARGS__) : (void)0)
/* With --yes 0. Else asks on a terminal, where only "y" or "yes" is a yes, and anything else an
 * error with the text `cancelled`. Elsewhere nobody can answer: --yes is missing, which is wrong
 * usage. */
int api_cmd_confirm(struct api_cmd *a, const char *cancelled, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A copy of text with {0} and {1} as operands and {n} as their number; NULL: no memory. */
char *api_cmd_expand(const struct api_cmd *a, const char *text);
/* A text of a command line or an error; bytes that are not UTF-8 become '?'. */
json_t *api_cmd_string(const char *text);

#endif
