/* SPDX-License-Identifier: Apache-2.0 */
/* Ends sandboxes: kills every process at once and replies; directories, cgroups and files follow
 * when the kernel has released the processes. The sandbox's directory moves to trash/ first, so
 * that the next keeper can finish after a crash at any point. */
#ifndef LODGE_KEEPER_SANDBOX_END_H
#define LODGE_KEEPER_SANDBOX_END_H

#include "keeper/keeper.h"

/* Sends SIGKILL if the process is still the one that this keeper started. */
void sandbox_end_kill_init(const struct sandbox_record *sb);
int sandbox_end_destroy(struct keeper *k, struct sandbox_record *sb, struct err *err);
/* Like destroy, but files of a sandbox created with `keep` stay. */
int sandbox_end_stop(struct keeper *k, struct sandbox_record *sb, struct err *err);
/* Removes the files of a sandbox that has ended; sets *ret_found if there were any. */
int sandbox_end_destroy_files(struct keeper *k, const char *id, bool *ret_found, struct err *err);
/* True while it is in the trash; some of its processes may still exist. */
bool sandbox_end_is_pending(const struct keeper *k, const char *id);
/* Continues with every removal; true when the trash is empty. */
bool sandbox_end_empty_trash(struct keeper *k);
/* Removes what a failed create left in sandboxes/ID. */
void sandbox_end_discard(struct keeper *k, struct sandbox_record *sb);

#endif
