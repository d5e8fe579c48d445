#!/bin/bash
# Runs in a machine started by systemd: checks of the packages and their units. Prints TAP.
# shellcheck disable=SC2016 # for other shells
cd /
n=0
base=/system.slice/lodge-sandboxes.service
data=/var/lib/lodge

check() { # check SENTENCE COMMAND... -- the command must succeed
	local name=$1 from=$SECONDS
	shift
	n=$((n + 1))
	if "$@" >/tmp/out 2>&1; then
		echo "ok $n - $name ($((SECONDS - from)) s)"
	else
		sed 's/^/# /' /tmp/out | cut -c -400
		echo "not ok $n - $name ($((SECONDS - from)) s)"
		journalctl -b -q --no-pager -n 25 -o cat -u lodged -u lodge-sandboxes | cut -c -300 | sed 's/^/# /'
	fi
}

wait_for() { # wait_for COMMAND... -- until it succeeds, at most 60 s
	local end=$((SECONDS + 60))
	while ((SECONDS < end)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.3
	done
	"$@"
}

ask() {
	curl -sS --fail-with-body -H "x-api-key: $(<$data/admin.key)" --unix-socket $data/lodge.sock "$@"
}
api=http://localhost/v1/sessions

field() { # field NAME -- of the JSON on standard input
	grep -o "\"$1\":[^,}]*" | head -1 | cut -d: -f2- | tr -d '"'
}

main_pid() {
	systemctl show -P MainPID lodged
}

# ---- the service ---------------------------------------------------------------------------------

is_up() {
	[ "$(systemctl is-active lodged lodge-sandboxes | sort -u)" = active ] && ask http://localhost/health | grep '"status":"ok"'
}

gave_up_root() {
	local pid
	pid=$(main_pid)
	grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' "/proc/$pid/status"
	[ "$(stat -c %U "/proc/$pid")" = lodge ] && grep -q '^CapEff:.0000000000000000$' "/proc/$pid/status" &&
		grep -q '^CapBnd:.0000000000000000$' "/proc/$pid/status" &&
		[ "$(stat -c '%U %a' $data)" = 'lodge 700' ] && [ "$(stat -c '%U %a' $data/keeper)" = 'root 700' ]
}

knows_limits() { # the features that need cgroups and a volume
	! journalctl -b -q -u lodged | grep LODGE_CGROUP || return 1
	ask $api --json '{"key": "disk", "limits": {"memory_bytes": 67108864, "cpus": 0.5, "pids": 32, "disk_bytes": 33554432}}' &&
		ask $api/key:disk/exec --json '{"command": "head -c 64M /dev/zero > big; echo $?; rm big"}' >/tmp/disk && cat /tmp/disk &&
		grep -q '"stdout":"1\\n"' /tmp/disk &&
		ask $api/key:disk/exec --json '{"command": "tail /dev/zero"}' >/tmp/memory && cat /tmp/memory && grep -q LIMIT_MEMORY /tmp/memory
}

has_root_inside() { # needs set-user-id files and no no_new_privs, in spite of the unit's restrictions
	mkdir -p /tmp/rootfs/bin && cp /busybox /tmp/rootfs/bin/sh && cp /busybox /tmp/rootfs/bin/busybox || return 1
	tar -C /tmp/rootfs -c . | ask -X POST http://localhost/v1/templates/mine -H 'Content-Type: application/x-tar' -T - || return 1
	ask $api --json '{"key": "root", "template": "mine", "class": "root"}' || return 1
	ask $api/key:root/exec --json '{"argv": ["/bin/sh", "-c", "busybox id -u; busybox touch f && busybox chmod 4755 f && busybox stat -c %a f && busybox hostname"]}' |
		tee /tmp/root
	grep -q '"stdout":"0\\n4755\\n' /tmp/root
}

begins_work() {
	ask $api --json '{"key": "work"}' && ask $api/key:work/files/note -T - <<<kept || return 1
	ask $api/key:work/exec --json '{"command": "i=0; while sleep 0.2; do i=$((i + 1)); echo $i; done", "background": true, "timeout_ms": 3600000}' |
		tee /tmp/exec
	exec_id=$(field exec_id </tmp/exec)
	[ -n "$exec_id" ] && wait_for counted 3
}

counted() { # counted LEAST -- the numbers without a gap, from 1
	ask "$api/key:work/execs/$exec_id/output?stdout_offset=0&stderr_offset=0" | field stdout | sed 's/\\n/\n/g' | grep . >/tmp/numbers
	seq "$(wc -l </tmp/numbers)" | cmp - /tmp/numbers && (("$(wc -l </tmp/numbers)" >= $1))
}

goes_on() { # more numbers than before, without a gap, by the same process
	local had
	ask "$api/key:work/execs/$exec_id" | grep '"state":"running"' || return 1
	counted 1 || return 1
	had=$(wc -l </tmp/numbers)
	wait_for counted $((had + 3)) && [ "$(inits)" = "$inits_before" ]
}

inits() { # of sessions; those of the pool are made anew with each keeper
	local p
	sed -n 's/^pid //p' /run/lodge/*/d/sandboxes/sbx_*/record | while read -r p; do
		[ ! -d "/proc/$p" ] || echo -n "$p "
	done
}

lives_in_its_unit() {
	systemd-cgls --no-pager -l -u lodge-sandboxes.service -u lodged.service
	local p
	for p in $(inits); do
		grep "^0::$base/lodge-" "/proc/$p/cgroup" || return 1
	done
	[ -n "$(inits)" ] && [ "$(grep -c . "/sys/fs/cgroup$base/cgroup.procs")" = 0 ]
}

restarts() {
	local before
	before=$(main_pid)
	systemctl restart lodged && wait_for is_up && [ "$(main_pid)" != "$before" ]
}

comes_back() {
	local before
	before=$(main_pid)
	kill -9 "$before"
	wait_for eval '[ "$(main_pid)" != 0 ] && [ "$(main_pid)" != '"$before"' ]' && wait_for is_up
}

reloads() {
	sed -i 's/^#log_level = info/log_level = debug/' /etc/lodge/lodged.conf
	systemctl reload lodged && wait_for eval 'journalctl -b -q -u lodged | grep "reloaded log_level"'
}

upgrades() {
	DEBIAN_FRONTEND=noninteractive dpkg -i /next/lodge_*.deb || return 1
	wait_for is_up && ask http://localhost/health | grep +next && [ "$(readlink "/proc/$(main_pid)/exe")" = /usr/sbin/lodged ] &&
		grep -q '^log_level = debug' /etc/lodge/lodged.conf
}

leaves_none_when_stopped() {
	systemctl stop lodge-sandboxes && ! pgrep -x lodge-init && ! systemctl is-active lodged
}

has_files_again() {
	systemctl start lodged && wait_for is_up && [ "$(ask $api/key:work/files/note)" = kept ]
}

removes() {
	dpkg -r lodge && ! pgrep 'lodge' && [ -d $data ] && [ -e /etc/lodge/lodged.conf ]
}

purges() {
	dpkg -P lodge >/tmp/purge 2>&1
	cat /tmp/purge
	grep -q 'removing /var/lib/lodge' /tmp/purge && [ ! -e $data ] && [ ! -e /etc/lodge ] && [ ! -e /run/lodge ]
}

echo "# $(systemctl --version | head -1), Linux $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
check 'it was started with the machine' wait_for is_up
check 'it gave up root, and the data is its own' gave_up_root
check 'limits on memory and disk hold' knows_limits
check 'a sandbox with a root works' has_root_inside
check 'a command in the background runs' begins_work
inits_before=$(inits)
check 'sandboxes live in the group of their own unit' lives_in_its_unit
systemd-cgls --no-pager -l -u lodge-sandboxes.service -u lodged.service | cut -c -110 | sed 's/^/# /'
check 'lodged is restarted' restarts
check 'the command goes on' goes_on
check 'lodged comes back after kill -9' comes_back
check 'the command goes on after that' goes_on
check 'settings are read again' reloads
check 'the next version is installed' upgrades
check 'the command goes on under the next version' goes_on
check 'new sandboxes are made by it' ask $api --json '{"key": "later"}'
systemd-analyze security --no-pager lodged lodge-sandboxes 2>/dev/null | grep -v '^✓' | sed 's/  */ /g; s/^/# /' | cut -c -150
check 'to stop the unit of the sandboxes ends them' leaves_none_when_stopped
check 'files are there after it' has_files_again
check 'removed, it runs no more and keeps its data' removes
check 'purged, nothing is left, and it says so' purges
for block in /blocks/*; do # the guides begin with the package
	check "the guides: ${block##*/}" bash -eo pipefail "$block"
done
echo "1..$n"
sync
