/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SNAPSHOT_SNAPSHOT_ARCHIVE_H
#define LODGE_SNAPSHOT_SNAPSHOT_ARCHIVE_H

struct engine;

/* Destroys the sessions that interrupted imports left; called while the engine starts. */
void snapshot_clean_imports(struct engine *e);

#endif
