/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_MACHINE_H
#define LODGE_MACHINE_MACHINE_H

#include "engine/internal.h"

/* Takes over `sb`, also on failure. Commands of an earlier engine are taken up (runs_adopt). */
int live_new(struct entry *n, struct sandbox *sb, bool adopted, struct live **ret, struct err *err);
/* The sandbox is being ended: commands are told, the pump lets go. The caller's reference goes. */
void live_close(struct live *v);
struct live *live_ref(struct live *v);
void live_unref(struct live *v);
DEFINE_AUTO(struct live *, live_unref);
/* The engine goes, the sandbox stays. The caller's reference goes. */
void live_leave(struct live *v);
bool live_is_gone(struct live *v);
/* With the turn nobody borrows anew; waits until what is lent out came back. Whole seconds. */
bool live_quiet(struct live *v, int64_t wait_ms);
unsigned live_busy(struct live *v); /* commands, loans, open streams */

#endif
