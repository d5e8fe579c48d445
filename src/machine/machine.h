/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_MACHINE_H
#define LODGE_MACHINE_MACHINE_H

#include "engine/internal.h"

/* The machine of the session in `rec`, with the merged template `spec`. Takes over `sb` and what
 * `spec` owns, also on failure. `adopted`: execs that an earlier engine started are adopted. */
int machine_new(struct engine *e, const struct store_session *rec, struct template *spec,
		struct sandbox *sb, bool adopted, struct machine **ret, struct err *err);
/* The sandbox is being ended: commands are told, the pump lets go. The caller's reference goes. */
void machine_close(struct machine *v);
struct machine *machine_ref(struct machine *v);
void machine_unref(struct machine *v);
DEFINE_AUTO(struct machine *, machine_unref);
/* The engine goes, the sandbox stays. The caller's reference goes. */
void machine_detach(struct machine *v);
bool machine_is_gone(struct machine *v);
/* With the turn nobody borrows anew; waits until what is lent out came back. Whole seconds. */
bool machine_wait_idle(struct machine *v, int64_t wait_ms);
unsigned machine_count_users(struct machine *v); /* commands, loans, open streams */

#endif
