/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SNAPSHOT_SNAPSHOT_ARCHIVE_H
#define LODGE_SNAPSHOT_SNAPSHOT_ARCHIVE_H

#include "engine/engine.h"

/* Writes the snapshot as .tar.zst to a file or pipe. */
int snapshot_export(struct engine *e, const struct caller *caller, const char *id, int fd,
		    struct err *err);
/* Reads such an archive into a snapshot on `template` that belongs to no session. */
int snapshot_import(struct engine *e, const struct caller *caller, const char *template,
		    const char *name, int fd, struct store_snapshot *ret, struct err *err);
/* Destroys the sessions that interrupted imports left; called while the engine starts. */
void snapshot_clean_imports(struct engine *e);

#endif
