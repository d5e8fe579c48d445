#!/bin/sh
# Sourced by the scripts that boot Debian's own kernel under qemu: the kernel, modules and early root.
# Needs $here, $work (its directory below the build), $seconds (how long it may take).
# shellcheck shell=sh disable=SC2154

die() {
	echo "Bail out! $*"
	exit 1
}

kernel_name() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }'
}

# Nothing is installed: the package is fetched once and unpacked in the build directory.
fetch_kernel() {
	kernel=$LODGE_BUILD/test-vm/kernel
	if [ ! -e "$kernel/done" ]; then
		package=$(kernel_name)
		if [ -z "$package" ]; then
			apt-get -qq update >&2 || :
			package=$(kernel_name)
		fi
		[ -n "$package" ] || die "apt knows no kernel package"
		rm -rf "$kernel"
		mkdir -p "$kernel"
		(cd "$kernel" && apt-get -qq download "$package" 2>&1 && dpkg -x ./*.deb . && rm ./*.deb) >&2 ||
			die "cannot fetch $package"
		busybox depmod -b "$kernel" "$(ls "$kernel/lib/modules")"
		touch "$kernel/done"
	fi
	version=$(ls "$kernel/lib/modules")
}

copy_modules() { # copy_modules TREE NAME... -- with their dependencies
	to=$1/lib/modules/$version
	shift
	mkdir -p "$to"
	for m; do
		awk -v m="/$m.ko:" 'index("/" $1, m) { gsub(":", ""); print }' "$kernel/lib/modules/$version/modules.dep"
	done | tr ' ' '\n' | sort -u | while read -r file; do
		[ -z "$file" ] || (cd "$kernel/lib/modules/$version" && cp --parents "$file" "$to/")
	done
	busybox depmod -b "${to%/lib/modules/*}" "$version"
}

build_early() { # the initramfs, with the modules that mount the disk
	early=$work/early
	rm -rf "$early"
	mkdir -p "$early/bin" "$early/dev" "$early/proc" "$early/new"
	cp /bin/busybox "$early/bin/busybox"
	ln -s busybox "$early/bin/sh"
	cp "$here/init.sh" "$early/init"
	chmod 755 "$early/init"
	copy_modules "$early" virtio_mmio virtio_blk
	(cd "$early" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 >"$work/initrd.gz"
}

# kHz of this processor's time stamp counter: calibrating it in the machine fails when the host is busy, and then the boot hangs
build_tsc() {
	cc -std=gnu17 -O1 -Wall -Wextra -Werror "$here/tsc.c" -o "$work/tsc" >&2 || die "cannot build tsc.c"
}

boot() { # boot [WORD...] -- of the kernel's command line
	timeout -k 5 "$seconds" qemu-system-x86_64 -M microvm,rtc=on -accel tcg,thread=multi -cpu max -smp 2 -m 1024 \
		-nodefaults -no-user-config -nographic -no-reboot -serial stdio \
		-kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initrd.gz" \
		-drive "id=root,file=$work/disk.img,format=raw,if=none,cache=unsafe" -device virtio-blk-device,drive=root \
		-append "console=ttyS0 quiet panic=-1 reboot=t cgroup_no_v1=all mitigations=off tsc_early_khz=$("$work/tsc") $*" </dev/null
}

run_machine() { # run_machine [WORD...] -- prints the TAP lines of its output; fails if one is bad or there is none
	boot "$@" | stdbuf -oL tr -d '\r' | tee "$work/console.log" |
		grep -E --line-buffered '^(ok|not ok|1\.\.|#|Bail out!)' | tee "$work/result.tap" || :
	rm -f "$work/disk.img"
	grep -q '^1\.\.[1-9]' "$work/result.tap" || {
		tail -n 30 "$work/console.log" >&2
		die "the machine did not come to the end (within $seconds s)"
	}
	plan=$(sed -n 's/^1\.\.//p' "$work/result.tap")
	[ "$(grep -c '^ok' "$work/result.tap")" = "$plan" ]
}
