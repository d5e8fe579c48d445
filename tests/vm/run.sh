#!/bin/sh
# Boots Debian's own kernel under qemu, with cgroup v2 only, and runs checks.sh there. Prints TAP.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
: "${LODGE_BUILD:=$top/build}"
work=$LODGE_BUILD/test-vm
tree=$work/tree # becomes the machine's disk
seconds=${LODGE_VM_SECONDS:-600}

# shellcheck source=tests/vm/machine.sh
. "$here/machine.sh"

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

build_driver() { # drives the engine directly where the command line has no option
	cc -std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$top/src" "$here/driver.c" \
		"$LODGE_BUILD/liblayer_sandbox.a" "$LODGE_BUILD/liblayer_wire.a" "$LODGE_BUILD/liblayer_base.a" \
		-ljansson -o "$work/vm-driver" >&2 || die "cannot build driver.c"
}

build_tree() { # a small Debian; its /usr is that of the `host` template
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

mkdir -p "$work"
fetch_kernel
build_tsc
build_driver
build_tree
build_early
# ext4, as most hosts have: the ids of a tmpfs cannot be mapped before Linux 6.3. Sparse, and with
# enough space for a volume.
rm -f "$work/disk.img"
mke2fs -q -t ext4 -E root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1 -d "$tree" "$work/disk.img" 4G >&2

run_machine "$@"
