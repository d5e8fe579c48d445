/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_pause.h"

#include "base/test_hook.h"
#include "keeper/job_table.h"

int sandbox_pause(struct keeper *k, struct sandbox_record *sb, bool paused, struct err *err)
{
	struct sandbox_record now = *sb;
	struct err ignored;
	int r;

	/* A later keeper thaws a frozen sandbox whose record does not say paused. So the record is
	 * written after the freeze and before the thaw. */
	if (paused && cgroup_freeze(&k->cgroups, sb->group, true, err) < 0)
		return -1;
	hook_crash("pause:frozen");
	now.paused = paused;
	r = sandbox_table_record_write_at(k->sandboxes, &now);
	hook_crash("pause:marked");
	if (r < 0) {
		if (paused && !job_table_freezes(sb->id))
			(void)cgroup_freeze(&k->cgroups, sb->group, false, &ignored);
		return err_sys(err, -r, "sandbox %s", sb->id);
	}
	sb->paused = paused;
	if (paused || job_table_freezes(sb->id)) /* the end of the job thaws it */
		return 0;
	return cgroup_freeze(&k->cgroups, sb->group, false, err);
}
