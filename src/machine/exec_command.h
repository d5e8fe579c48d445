/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a command as its record keeps it. The command runs whole, but a record that kept all
 * of it would let one session fill the database. */
#ifndef LODGE_MACHINE_EXEC_COMMAND_H
#define LODGE_MACHINE_EXEC_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

enum { EXEC_COMMAND_KEPT = 4096 }; /* bytes of all words together, each with its NUL */
#define EXEC_COMMAND_CUT "\xe2\x80\xa6" /* an ellipsis, at the end of what was cut */

struct exec_command {
	struct json_out json;
	size_t left;
	bool is_text, is_cut;
};

/* is_text: one word, printed as a string. Otherwise any number of them, as an array. */
void exec_command_init(struct exec_command *c, bool is_text);
/* The word that does not fit is cut, with EXEC_COMMAND_CUT at its end, and those after it are left
 * out. */
void exec_command_add(struct exec_command *c, const char *word);
/* The JSON, which the caller frees; NULL without memory. Ends the use of *c. */
char *exec_command_take(struct exec_command *c);

#endif
