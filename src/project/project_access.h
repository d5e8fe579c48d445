/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_PROJECT_ACCESS_H
#define LODGE_PROJECT_PROJECT_ACCESS_H

#include "engine/internal.h"

int project_not_found(struct err *err); /* always -1 */

enum project_right { PROJECT_VIEW, PROJECT_SAVE, PROJECT_DELETE };
/* Loads the project if the user has this right on it. ret may be NULL. */
int project_access(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, enum project_right right, struct store_project *ret,
		   struct err *err);

#endif
