#!/bin/sh
# Boots Debian's own kernel under qemu, with cgroup v2 only, and runs checks.sh there. Prints TAP.
# Nothing is installed: the kernel package is fetched once and unpacked in the build directory.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
: "${LODGE_BUILD:=$top/build}"
work=$LODGE_BUILD/test-vm
tree=$work/tree   # becomes the machine's disk
early=$work/early # becomes its initramfs: what is needed to mount that disk
seconds=${LODGE_VM_SECONDS:-170}

die() {
	echo "Bail out! $*"
	exit 1
}

kernel_name() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }'
}

fetch_kernel() {
	[ ! -e "$work/kernel/done" ] || return 0
	package=$(kernel_name)
	if [ -z "$package" ]; then
		apt-get -qq update >&2 || :
		package=$(kernel_name)
	fi
	[ -n "$package" ] || die "apt knows no kernel package"
	rm -rf "$work/kernel"
	mkdir -p "$work/kernel"
	(cd "$work/kernel" && apt-get -qq download "$package" 2>&1 && dpkg -x ./*.deb . && rm ./*.deb) >&2 ||
		die "cannot fetch $package"
	busybox depmod -b "$work/kernel" "$(ls "$work/kernel/lib/modules")"
	touch "$work/kernel/done"
}

copy_modules() { # copy_modules TREE NAME... -- with what they depend on
	to=$1/lib/modules/$version
	shift
	mkdir -p "$to"
	for m; do
		awk -v m="/$m.ko:" 'index("/" $1, m) { gsub(":", ""); print }' "$work/kernel/lib/modules/$version/modules.dep"
	done | tr ' ' '\n' | sort -u | while read -r file; do
		[ -z "$file" ] || (cd "$work/kernel/lib/modules/$version" && cp --parents "$file" "$to/")
	done
	busybox depmod -b "${to%/lib/modules/*}" "$version"
}

copy_programs() { # copy_programs DIRECTORY FILE... -- with the libraries they are linked to
	to=$1
	shift
	for file; do
		cp -L "$file" "$tree/$to/"
		{ ldd "$file" 2>/dev/null || :; } | grep -o '/[^ ]*' | while read -r lib; do
			case $lib in
			/lib64/* | /usr/lib64/*) cp -L "$lib" "$tree/usr/lib64/" ;;
			*) cp -L "$lib" "$tree/usr/lib/x86_64-linux-gnu/" ;;
			esac
		done
	done
}

build_driver() { # drives the engine's own interface where the command line has no word for it
	cc -std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$top/src" "$here/driver.c" \
		"$LODGE_BUILD/liblayer_sandbox.a" "$LODGE_BUILD/liblayer_wire.a" "$LODGE_BUILD/liblayer_base.a" \
		-ljansson -o "$work/vm-driver" >&2 || die "cannot build driver.c"
}

build_tree() { # a small Debian: its /usr is what the `host` template shows inside
	rm -rf "$tree"
	for d in usr/bin usr/sbin usr/lib/x86_64-linux-gnu usr/lib64 etc tmp proc sys dev run var/lib root mnt lodge; do
		mkdir -p "$tree/$d"
	done
	for d in bin sbin lib lib64; do
		ln -s "usr/$d" "$tree/$d"
	done
	for p in bash cat chown cut dd env head id ls mkdir mkfifo rm sleep sort stat tail touch tr true wc uname; do
		copy_programs usr/bin "/usr/bin/$p"
	done
	copy_programs usr/bin /usr/bin/setsid /bin/grep /bin/sed /usr/bin/find
	copy_programs usr/sbin /sbin/mkfs.btrfs
	copy_programs lodge "$LODGE_BUILD/lodge" "$LODGE_BUILD/lodge-keeper" "$LODGE_BUILD/lodge-init" "$work/vm-driver"
	cp /bin/busybox "$tree/usr/bin/busybox"
	ln -s bash "$tree/usr/bin/sh"
	cp /etc/os-release "$tree/etc/os-release"
	printf 'root:x:0:0:root:/root:/bin/bash\nplain:x:2000:2000:plain:/tmp:/bin/bash\n' >"$tree/etc/passwd"
	printf 'root:x:0:\nplain:x:2000:\n' >"$tree/etc/group"
	cp "$here/init.sh" "$tree/init"
	cp "$here/checks.sh" "$tree/checks.sh"
	chmod 755 "$tree/init"
	copy_modules "$tree" overlay btrfs loop
}

build_early() {
	rm -rf "$early"
	mkdir -p "$early/bin" "$early/dev" "$early/proc" "$early/new"
	cp /bin/busybox "$early/bin/busybox"
	ln -s busybox "$early/bin/sh"
	cp "$here/init.sh" "$early/init"
	chmod 755 "$early/init"
	copy_modules "$early" virtio_mmio virtio_blk
	(cd "$early" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 >"$work/initrd.gz"
}

boot() {
	timeout -k 5 "$seconds" qemu-system-x86_64 -M microvm,rtc=on -accel tcg,thread=multi -cpu max -smp 2 -m 1024 \
		-nodefaults -no-user-config -nographic -no-reboot -serial stdio \
		-kernel "$work/kernel/boot/vmlinuz-$version" -initrd "$work/initrd.gz" \
		-drive "id=root,file=$work/disk.img,format=raw,if=none,cache=unsafe" -device virtio-blk-device,drive=root \
		-append "console=ttyS0 quiet panic=-1 reboot=t cgroup_no_v1=all mitigations=off tsc_early_khz=$("$work/vm-driver" tsc)" </dev/null
}

mkdir -p "$work"
fetch_kernel
version=$(ls "$work/kernel/lib/modules")
build_driver
build_tree
build_early
# ext4, as most hosts have: the ids of a tmpfs cannot be mapped before Linux 6.3. Sparse, and with
# room for a volume.
rm -f "$work/disk.img"
mke2fs -q -t ext4 -E root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1 -d "$tree" "$work/disk.img" 4G >&2

boot | tr -d '\r' | tee "$work/console.log" | grep -E --line-buffered '^(ok|not ok|1\.\.|#|Bail out!)' | tee "$work/result.tap" || :
rm -f "$work/disk.img"
grep -q '^1\.\.[1-9]' "$work/result.tap" || {
	tail -n 30 "$work/console.log" >&2
	die "the machine did not come to the end (within $seconds s)"
}
plan=$(sed -n 's/^1\.\.//p' "$work/result.tap")
[ "$(grep -c '^ok' "$work/result.tap")" = "$plan" ]
