/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_FRAGMENT_RESTORE_H
#define LODGE_PROJECT_FRAGMENT_RESTORE_H

#include "base/gate.h"
#include "project/fragment.h"

enum { RESTORE_STEP = 1000 }; /* files between two progress reports */
struct restore_progress {
	void (*fn)(void *arg, unsigned done); /* done: files that lodge-init has read */
	void *arg;
};

/* Writes the files into the session's working directory and verifies a sample of them. */
int fragment_restore_files(struct engine *e, const struct caller *caller, const char *session,
			   const struct store_file_list *files,
			   const struct restore_progress *progress, struct err *err);
/* Reads the files of the working directory. 1: they exceed what a fragment may hold; *ret is
 * unchanged. Pass *memory to gate_leave() when the files are freed, also on failure. */
int fragment_collect_files(struct engine *e, const struct caller *caller, const char *session,
			   struct store_file_list *ret, unsigned *ret_skipped,
			   struct gate_ticket *memory, struct err *err);

#endif
