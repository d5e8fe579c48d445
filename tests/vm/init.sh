#!/bin/sh
# The first process of the test machine, twice: from the initramfs, then again from the disk.
if [ "$1" != moved ]; then
	b=/bin/busybox
	$b mount -t devtmpfs none /dev
	$b mount -t proc none /proc
	$b modprobe virtio_mmio
	$b modprobe virtio_blk
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -b /dev/vda ] || break
		$b sleep 0.2
	done
	$b mount -t ext4 /dev/vda /new
	$b umount /proc /dev
	exec $b switch_root /new /init moved
fi

export PATH=/lodge:/usr/bin:/usr/sbin HOME=/root
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
busybox mount -t devtmpfs none /dev
mkdir -p /dev/pts /dev/shm
busybox mount -t devpts none /dev/pts
busybox mount -t tmpfs -o mode=1777 none /dev/shm
busybox mount -t tmpfs -o mode=755 none /run
busybox mount -t tmpfs -o mode=1777 none /tmp
# as systemd mounts it
busybox mount -t cgroup2 -o nsdelegate,memory_recursiveprot none /sys/fs/cgroup
busybox ip link set lo up
for m in loop overlay btrfs; do
	busybox modprobe "$m" || echo "# no module $m"
done
# with swap, a limit that does not include swap would not trigger the OOM killer
dd if=/dev/zero of=/swap bs=1M count=256 2>/dev/null
busybox mkswap /swap >/dev/null
busybox chmod 600 /swap
busybox swapon /swap || echo "# no swap"
bash /checks.sh
busybox sync
busybox reboot -f
