/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <string.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"

#define QUOTA_ENABLE_SIMPLE 4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7 */

bool btrfs_is(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
}

int btrfs_quota_enable(int dir)
{
	struct btrfs_ioctl_quota_ctl_args args = { .cmd = QUOTA_ENABLE_SIMPLE };

	if (ioctl(dir, BTRFS_IOC_QUOTA_CTL, &args) == 0 || errno == EEXIST)
		return 0;
	args.cmd = BTRFS_QUOTA_CTL_ENABLE;
	return ioctl(dir, BTRFS_IOC_QUOTA_CTL, &args) < 0 && errno != EEXIST ? -errno : 0;
}

int btrfs_subvol_create(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	snprintf(args.name, sizeof(args.name), "%s", name);
	return ioctl(dir, BTRFS_IOC_SUBVOL_CREATE, &args) < 0 ? -errno : 0;
}

int btrfs_subvol_snapshot(int dir, const char *name, int from)
{
	struct btrfs_ioctl_vol_args_v2 args = { .fd = from };

	snprintf(args.name, sizeof(args.name), "%s", name);
	return ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0 ? -errno : 0;
}

static int subvol_id(int subvol, uint64_t *ret)
{
	struct btrfs_ioctl_ino_lookup_args args = { .objectid = BTRFS_FIRST_FREE_OBJECTID };

	if (ioctl(subvol, BTRFS_IOC_INO_LOOKUP, &args) < 0)
		return -errno;
	*ret = args.treeid;
	return 0;
}

int btrfs_subvol_delete(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args args = { 0 };
	struct btrfs_ioctl_qgroup_create_args group = { 0 };
	int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t id = 0;

	if (sub < 0)
		return errno == ENOENT ? 0 : -errno;
	(void)subvol_id(sub, &id);
	close(sub);
	snprintf(args.name, sizeof(args.name), "%s", name);
	if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) < 0)
		return -errno;
	group.qgroupid = id;
	(void)ioctl(dir, BTRFS_IOC_QGROUP_CREATE, &group); /* create = 0: remove */
	return 0;
}

int btrfs_limit(int dir, int subvol, uint64_t bytes)
{
	struct btrfs_ioctl_qgroup_limit_args args = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
	};
	uint64_t id = 0;
	int r = subvol_id(subvol, &id);

	if (r < 0)
		return r;
	args.qgroupid = id;
	return ioctl(dir, BTRFS_IOC_QGROUP_LIMIT, &args) < 0 ? -errno : 0;
}

/* Opens what the kernel shows of the quota group: "/sys/fs/btrfs/UUID/qgroups/0_ID". */
static int open_group(int subvol, uint64_t id)
{
	struct btrfs_ioctl_fs_info_args fs = { 0 };
	char path[128];
	size_t n = (size_t)snprintf(path, sizeof(path), "/sys/fs/btrfs/");

	if (ioctl(subvol, BTRFS_IOC_FS_INFO, &fs) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(fs.fsid); i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%s%02x",
				      i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", fs.fsid[i]);
	snprintf(path + n, sizeof(path) - n, "/qgroups/0_%" PRIu64, id);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What the last commit counted, and data that was written since then. Without the latter a file
 * shows only when its pages were written back and a commit followed, which takes up to a minute.
 * The limit also counts the metadata that is reserved, an upper bound. */
static int read_group(int subvol, uint64_t id, struct btrfs_usage *ret)
{
	auto_close int dir = open_group(subvol, id);
	uint64_t counted, written, reserved, more, has_limit, limit;

	/* in this order: a commit in between moves bytes from `written` to `counted` */
	if (dir < 0 || file_number_at(dir, "rsv_data", "", &written) < 0 ||
	    file_number_at(dir, "rsv_meta_prealloc", "", &reserved) < 0 ||
	    file_number_at(dir, "rsv_meta_pertrans", "", &more) < 0 ||
	    file_number_at(dir, "referenced", "", &counted) < 0 ||
	    file_number_at(dir, "limit_flags", "", &has_limit) < 0 ||
	    file_number_at(dir, "max_referenced", "", &limit) < 0)
		return -ENOENT;
	ret->bytes = counted + written;
	reserved += more + ret->bytes;
	ret->left = !(has_limit & BTRFS_QGROUP_LIMIT_MAX_RFER) ? UINT64_MAX
		    : limit > reserved			       ? limit - reserved
							       : 0;
	return 0;
}

/* What the last commit counted, for a host without /sys. */
static int search_group(int subvol, uint64_t id, struct btrfs_usage *ret)
{
	struct btrfs_ioctl_search_args args = {
		.key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
			 .min_type = BTRFS_QGROUP_INFO_KEY,
			 .max_type = BTRFS_QGROUP_INFO_KEY,
			 .max_transid = UINT64_MAX,
			 .nr_items = 1 },
	};
	struct btrfs_ioctl_search_header head;
	struct btrfs_qgroup_info_item info;

	args.key.min_offset = args.key.max_offset = id;
	if (ioctl(subvol, BTRFS_IOC_TREE_SEARCH, &args) < 0)
		return -errno;
	memcpy(&head, args.buf, sizeof(head));
	if (args.key.nr_items != 1 || head.len < sizeof(info))
		return -ENODATA;
	memcpy(&info, args.buf + sizeof(head), sizeof(info));
	ret->bytes = info.rfer; /* little-endian on disk, as is x86_64 */
	ret->left = 0;
	return 0;
}

int btrfs_get_usage(int subvol, struct btrfs_usage *ret)
{
	uint64_t id = 0;
	int r = subvol_id(subvol, &id);

	if (r < 0)
		return r;
	return read_group(subvol, id, ret) == 0 ? 0 : search_group(subvol, id, ret);
}

int btrfs_device_bytes(int dir, uint64_t *ret)
{
	struct btrfs_ioctl_dev_info_args args = { .devid = 1 };

	if (ioctl(dir, BTRFS_IOC_DEV_INFO, &args) < 0)
		return -errno;
	*ret = args.total_bytes;
	return 0;
}

/* Reads the chunks of one page of results. `from` becomes the offset after the last. */
static void read_extents(const struct btrfs_ioctl_search_args *args, uint64_t *from, uint64_t *end)
{
	struct btrfs_ioctl_search_header head;
	struct btrfs_dev_extent extent;
	size_t at = 0;

	for (uint32_t i = 0; i < args->key.nr_items; i++) {
		memcpy(&head, args->buf + at, sizeof(head));
		at += sizeof(head);
		if (head.type == BTRFS_DEV_EXTENT_KEY && head.len >= sizeof(extent)) {
			memcpy(&extent, args->buf + at, sizeof(extent));
			if (head.offset + extent.length > *end)
				*end = head.offset + extent.length;
		}
		at += head.len;
		*from = head.offset + 1;
	}
}

int btrfs_last_extent(int dir, uint64_t *ret)
{
	uint64_t from = 0, end = 0;

	for (;;) {
		struct btrfs_ioctl_search_args args = {
			.key = { .tree_id = BTRFS_DEV_TREE_OBJECTID,
				 .min_objectid = 1,
				 .max_objectid = 1,
				 .min_type = BTRFS_DEV_EXTENT_KEY,
				 .max_type = BTRFS_DEV_EXTENT_KEY,
				 .min_offset = from,
				 .max_offset = UINT64_MAX,
				 .max_transid = UINT64_MAX,
				 .nr_items = 64 },
		};

		if (ioctl(dir, BTRFS_IOC_TREE_SEARCH, &args) < 0)
			return -errno;
		if (args.key.nr_items == 0)
			break;
		read_extents(&args, &from, &end);
	}
	*ret = end;
	return 0;
}

int btrfs_resize(int dir, uint64_t bytes)
{
	struct btrfs_ioctl_vol_args args = { 0 };
	int r;

	snprintf(args.name, sizeof(args.name), "1:%llu", (unsigned long long)bytes);
	r = ioctl(dir, BTRFS_IOC_RESIZE, &args);
	/* positive: another operation on the device is running */
	return r < 0 ? -errno : r > 0 ? -EBUSY : 0;
}

int btrfs_sync(int dir)
{
	return ioctl(dir, BTRFS_IOC_SYNC) < 0 ? -errno : 0;
}
