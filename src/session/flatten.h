/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_FLATTEN_H
#define LODGE_SESSION_FLATTEN_H

struct engine;

/* Merges the layers of every session at rest that lies on too many of them, in the background. */
void flatten_sessions(struct engine *e);

#endif
