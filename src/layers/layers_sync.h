/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LAYERS_LAYERS_SYNC_H
#define LODGE_LAYERS_LAYERS_SYNC_H

#include "engine/internal.h"

void layers_sync(struct engine *e, const char *layer); /* durable and measured, in the background */
void layers_sync_all(struct engine *e); /* what the last engine left unsynced */

#endif
