/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, and sessions made from them. */
#include <errno.h>
#include <fcntl.h>

#include "lib/lib_convert.h"
#include "lib/lib_opts.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "snapshot/snapshot_archive.h"
#include "layers/snapshot_record.h"

/* Checks an id from the caller. */
static int check_id(const char *id)
{
	return id ? 0 : err_set(&last, ERR_INVALID, "snapshot: id is missing");
}

static int check_fd(int fd)
{
	return fcntl(fd, F_GETFD) >= 0 ? 0 : err_set(&last, ERR_INVALID, "fd: %d is not open", fd);
}

PUBLIC int lodge_snapshot_take(struct lodge *l, const struct lodge_ref *ref, const char *name,
			       int stop, struct lodge_snapshot **ret)
{
	struct snapshot_opts want = { .name = name, .stop = stop };
	struct store_snapshot s;
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_snapshot(l->engine, &l->caller, &r, &want, &s, &last) < 0)
		return -1;
	return lib_put_snapshot(&s, ret);
}

PUBLIC int lodge_snapshot_get(struct lodge *l, const char *id, struct lodge_snapshot **ret)
{
	struct store_snapshot s;

	if (check_id(id) < 0 || snapshot_get(l->engine, &l->caller, id, &s, &last) < 0)
		return -1;
	return lib_put_snapshot(&s, ret);
}

PUBLIC int lodge_snapshot_list(struct lodge *l, const struct lodge_ref *ref, int64_t after,
			       uint32_t limit, struct lodge_snapshots **ret)
{
	struct store_snapshot_list list = { 0 };
	struct session_ref r;

	if ((ref && lib_get_ref(ref, &r) < 0) ||
	    snapshot_list(l->engine, &l->caller, ref ? &r : NULL, lib_get_page(after, limit), &list,
			  &last) < 0)
		return -1;
	return lib_put_snapshots(&list, ret);
}

PUBLIC int lodge_snapshot_remove(struct lodge *l, const char *id)
{
	return check_id(id) < 0 ? -1 : snapshot_remove(l->engine, &l->caller, id, &last);
}

PUBLIC int lodge_snapshot_export(struct lodge *l, const char *id, int fd)
{
	if (check_id(id) < 0 || check_fd(fd) < 0)
		return -1;
	return snapshot_export(l->engine, &l->caller, id, fd, &last);
}

PUBLIC int lodge_snapshot_import(struct lodge *l, const char *template_name, const char *name,
				 int fd, struct lodge_snapshot **ret)
{
	struct store_snapshot s;

	if (check_fd(fd) < 0 ||
	    snapshot_import(l->engine, &l->caller, template_name ? template_name : "host", name, fd,
			    &s, &last) < 0)
		return -1;
	return lib_put_snapshot(&s, ret);
}

PUBLIC int lodge_fork(struct lodge *l, const struct lodge_ref *ref, const char *snapshot,
		      uint32_t count, const struct lodge_ref *keys, struct lodge_sessions **ret)
{
	auto_free struct store_binding *b = NULL;
	struct store_session_list list = { .count = count };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 || lib_get_keys(keys, keys ? count : 0, &b) < 0)
		return -1;
	list.items = calloc(count ? count : 1, sizeof(*list.items));
	if (!list.items)
		return err_sys(&last, ENOMEM, "fork");
	if (session_fork(l->engine, &l->caller, &r, snapshot, count, b, list.items, &last) < 0) {
		free(list.items);
		return -1;
	}
	return lib_put_sessions(&list, ret);
}

PUBLIC int lodge_rollback(struct lodge *l, const struct lodge_ref *ref, const char *snapshot,
			  int64_t if_version, struct lodge_session **ret)
{
	struct store_session s = { 0 };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 || check_id(snapshot) < 0 ||
	    session_rollback(l->engine, &l->caller, &r, snapshot, if_version, &s, &last) < 0)
		return -1;
	return lib_put_session(&s, ret);
}
