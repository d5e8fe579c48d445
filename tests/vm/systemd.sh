#!/bin/sh
# Boots a Debian with systemd under qemu, with the packages installed, and runs systemd_checks.sh there, which also follows
# the guides. Prints TAP.
# usage: tests/vm/systemd.sh [DEBS [NEXT]] -- directories with the packages and with those of a later version
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
: "${LODGE_BUILD:=$top/build}"
debs=${1:-$top/build/deb}
next=${2:-$top/build/deb-next}
work=$LODGE_BUILD/test-vm-systemd
tree=$work/tree # becomes the machine's disk
seconds=${LODGE_VM_SECONDS:-1800}

# shellcheck source=tests/vm/machine.sh
. "$here/machine.sh"

build_tree() {
	rm -rf "$tree"
	mkdir -p "$tree/build/deb" "$tree/next" "$tree/blocks"
	"$top/tests/package/root" "$tree" >&2 || die "no Debian to boot"
	cp "$debs"/lodge_*.deb "$debs"/liblodge0_*.deb "$tree/build/deb/"
	cp "$next"/lodge_*.deb "$next"/liblodge0_*.deb "$tree/next/"
	unshare -mpf --mount-proc="$tree/proc" chroot "$tree" sh -c 'dpkg -i /build/deb/lodge_*.deb' >&2 || die "cannot install"
	ln -sf /lib/systemd/systemd "$tree/init"
	cp /bin/busybox "$tree/busybox"
	cp "$here/systemd_checks.sh" "$tree/checks.sh"
	/usr/bin/python3 "$top/tests/lib/pages.py" service "$tree/blocks"
	cat >"$tree/etc/systemd/system/checks.service" <<-'UNIT'
		[Unit]
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /checks.sh
		ExecStopPost=/bin/systemctl --force poweroff
		StandardOutput=file:/dev/ttyS0
		StandardError=inherit
		TimeoutStartSec=infinity
	UNIT
	mkdir -p "$tree/etc/systemd/system/default.target.wants"
	ln -sf ../checks.service "$tree/etc/systemd/system/default.target.wants/checks.service"
	ln -sf /lib/systemd/system/multi-user.target "$tree/etc/systemd/system/default.target"
	: >"$tree/etc/fstab"
	# slow and not needed here
	for unit in getty.target systemd-update-utmp.service systemd-random-seed.service serial-getty@ttyS0.service \
		systemd-journal-flush.service systemd-hwdb-update.service ldconfig.service systemd-timesyncd.service \
		systemd-networkd.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer dpkg-db-backup.timer; do
		ln -sf /dev/null "$tree/etc/systemd/system/$unit"
	done
	copy_modules "$tree/usr" overlay btrfs loop autofs4
	chroot "$tree" depmod "$version" # kmod's, with its own index
}

ls "$debs"/lodge_*.deb "$next"/lodge_*.deb >/dev/null || die "no packages in $debs and $next"
mkdir -p "$work"
fetch_kernel
build_tsc
build_tree
build_early
rm -f "$work/disk.img"
mke2fs -q -t ext4 -E root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1 -d "$tree" "$work/disk.img" 4G >&2
rm -rf "$tree"
run_machine rw systemd.log_target=journal systemd.show_status=false
