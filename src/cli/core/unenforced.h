/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of limits that the host does not enforce, as answers have them: [{limit, reason}, ...]. */
#ifndef LODGE_CLI_CORE_UNENFORCED_H
#define LODGE_CLI_CORE_UNENFORCED_H

#include "cli/core/field.h"

/* " (not enforced)" if the list has the limit, else "". */
const char *unenforced_mark(const json_t *list, const char *limit);
/* "memory_bytes, pids", of the limits that `lodge inspect` prints; "": all of these are enforced.
 */
const char *unenforced_names(const json_t *list, char buf[FIELD_TEXT]);
/* A line of a record for each reason: "memory_bytes, pids: REASON". */
void unenforced_add_lines(struct field_table *t, const char *title, json_t *list);
/* The same, without limits that `lodge inspect` does not print. */
void unenforced_add_shown(struct field_table *t, const char *title, json_t *list);

#endif
