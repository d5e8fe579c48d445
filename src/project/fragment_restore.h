/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_FRAGMENT_RESTORE_H
#define LODGE_PROJECT_FRAGMENT_RESTORE_H

#include "project/internal.h"

/* Writes the files into the session's working directory, and looks whether they are there. */
int fragment_restore_files(struct engine *e, const struct caller *who, const char *session,
			   const struct store_file_list *files,
			   const struct restore_progress *watch, struct err *err);
/* The other way: what lies in the working directory now. 1: more than a fragment may hold; *ret is
 * untouched then. *memory is for mem_gate_leave() when the files are not needed any more, also on
 * failure. */
int fragment_collect_files(struct engine *e, const struct caller *who, const char *session,
			   struct store_file_list *ret, unsigned *ret_skipped,
			   struct gate_ticket *memory, struct err *err);

#endif
