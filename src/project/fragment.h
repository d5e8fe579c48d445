/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_FRAGMENT_H
#define LODGE_PROJECT_FRAGMENT_H

#include "project/project.h"

/* Loads the fragment, which must belong to the project. */
int fragment_find(struct engine *e, const struct caller *caller, const char *project,
		  const char *fragment, struct store_fragment *ret, struct err *err);
int fragment_load(struct engine *e, const struct caller *caller, const char *fragment,
		  struct store_file_list *ret, struct err *err);

#endif
