#!/bin/bash
# Runs in the test machine: checks of lodge on a kernel with cgroup v2 only.
# Prints TAP.
cg=/sys/fs/cgroup
n=0

check() { # check SENTENCE COMMAND... -- the command must succeed
	local name=$1 from=$SECONDS
	shift
	n=$((n + 1))
	if "$@" >/tmp/out 2>&1; then
		echo "ok $n - $name ($((SECONDS - from)) s)"
	else
		sed 's/^/# /' /tmp/out
		echo "not ok $n - $name ($((SECONDS - from)) s)"
	fi
}

same() { # same WANT GOT
	echo "want '$1', got '$2'"
	[ "$1" = "$2" ]
}

# ---- what the host sees ----------------------------------------------------------------------------

processes() { # processes WORD -- pids whose command line or name contains it. Without a fork, which is slow here
	local p name words
	for p in /proc/[0-9]*; do
		{ read -r name <"$p/comm" && mapfile -d '' -t words <"$p/cmdline"; } 2>/dev/null || continue
		[[ "$name ${words[*]}" != *"$1"* ]] || echo "${p#/proc/}"
	done
}

wait_for() { # wait_for COMMAND... -- until it succeeds, at most 10 s
	local end=$((SECONDS + 10))
	while ((SECONDS < end)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	"$@"
}

groups() {
	find "$cg" -name 'lodge*' -type d
}

volume_entries() { # files of sandboxes in the volume, which is mounted for this
	[ -e /var/lib/lodge/volume.btrfs ] || return 0
	busybox mount -t btrfs -o loop,ro /var/lib/lodge/volume.btrfs /mnt || { echo 'a volume in use'; return; }
	find /mnt -mindepth 1 -maxdepth 1 -name 's-*'
	busybox umount /mnt
}

traces() { # every kind of object that a sandbox consists of
	groups
	processes lodge-init
	processes lodge-keeper
	processes 'sleep 77'
	diff_of_mounts
	find /run/lodge -name 'o-*'
	grep -l . /sys/block/loop*/loop/backing_file 2>/dev/null
	volume_entries
}

diff_of_mounts() {
	sort /proc/self/mountinfo | cut -d' ' -f5 >/tmp/mounts.now
	busybox diff /tmp/mounts.before /tmp/mounts.now | grep '^[-+]/'
}

nothing_is_left() {
	local left
	wait_for no_traces
	left=$(traces)
	echo "left: $left"
	[ -z "$left" ]
}

no_traces() {
	[ -z "$(traces)" ]
}

# ---- a sandbox in the background -------------------------------------------------------------------

start() { # start OPTIONS... -- a sandbox that keeps running; $box is its cgroup
	lodge run "$@" >/tmp/bg 2>&1 &
	background=$!
	wait_for box_runs && return 0
	cat /tmp/bg
	box=/nowhere
	return 1
}

box_runs() {
	box=$(find "$cg" -path '*/lodge-*/*/cmd/*' -name 'x*' -type d | head -n 1)
	[ -n "$box" ] && [ -n "$(<"$box/cgroup.procs")" ] || return 1
	box=${box%/cmd/*}
}

ended() {
	! kill -0 "$background"
}

finish() { # waits for it, with a limit: an earlier failure must not stop the rest
	wait_for ended || kill -9 "$background"
	wait "$background"
}

stop() {
	kill "$background"
	finish
}

setting() { # setting FILE VALUE -- of the sandbox in the background
	same "$2" "$(cat "$box/$1")"
}

# ---- the checks ------------------------------------------------------------------------------------

only_v2() {
	! grep -q ' cgroup ' /proc/mounts && grep -q memory "$cg/cgroup.controllers"
}

status_comes_through() {
	lodge run -- sh -c 'echo out; exit 7'
	same 7 $?
}

run_hits() { # run_hits WORD OPTIONS... -- the JSON of `lodge run` must hold the word
	local want=$1
	shift
	lodge run --json "$@" >/tmp/json 2>/tmp/err
	cat /tmp/json /tmp/err
	grep -q "$want" /tmp/json
}

lacks() { # lacks WORD -- the JSON before
	! grep -q "$1" /tmp/json
}

output_is() { # output_is TEXT OPTIONS...
	local want=$1
	shift
	same "$want" "$(lodge run "$@" 2>&1)"
}

no_swap_is_used() {
	grep -q /swap /proc/swaps || return 1
	run_hits LIMIT_MEMORY --memory 32M -- dd if=/dev/zero of=/dev/null bs=96M count=1
}

memory_of_files_counts() { # files in the memory store count as the sandbox's memory
	run_hits LIMIT_MEMORY --memory 32M --disk 200M --store memory -- dd if=/dev/zero of=/tmp/f bs=1M count=96
}

other_memory_is_untouched() {
	run_hits '"exit_code":0' --memory 128M -- dd if=/dev/zero of=/dev/null bs=64M count=1 && lacks LIMIT_
}

limits_are_written() {
	start --memory 64M --pids 33 --cpus 0.5 -- sleep 777 || return 1
	setting cmd/memory.max 67108864 && setting cmd/memory.swap.max 0 && setting pids.max 35 &&
		setting cpu.max '50000 100000' && setting cpu.weight 100 && 
		setting init/memory.max 134217728 && setting init/memory.swap.max 0 # twice its share, and 64M
}

output_is_charged_to_init() { # and fits: two rings of 16M, in a group that has 128M
	start --json --memory 64M --output 16M -c 'head -c 40M /dev/zero; head -c 40M /dev/zero >&2; sleep 777' || return 1
	wait_for init_holds 33554432 && setting init/memory.max 134217728 && same 0 "$(init_kills)"
	set -- $?
	stop
	return "$1"
}

init_holds() { # init_holds BYTES
	local now
	now=$(<"$box/init/memory.current")
	echo "init has $now"
	((now >= $1))
}

init_kills() {
	sed -n 's/^oom_kill //p' "$box/init/memory.events"
}

init_is_apart() { # lodge-init in init/, the command in a leaf, no process in between
	local leaf
	leaf=$(find "$box/cmd" -mindepth 1 -type d -name 'x*')
	same 1 "$(wc -l <"$box/init/cgroup.procs")" && same 0 "$(wc -l <"$box/cgroup.procs")" &&
		same 0 "$(wc -l <"$box/cmd/cgroup.procs")" && same 1 "$(wc -l <"$leaf/cgroup.procs")" &&
		same sleep "$(cat "/proc/$(cat "$leaf/cgroup.procs")/comm")"
}

limits_belong_to_the_host() { # lodge-init may create leaves and move into them, but not change limits
	local f
	for f in cpu.max pids.max memory.max cgroup.subtree_control init/memory.max cmd/memory.max cmd/cgroup.subtree_control; do
		same 0 "$(stat -c %u "$box/$f")" || return 1
	done
}

traces_are_seen() { # otherwise "nothing is left" would prove nothing
	local kind
	for kind in groups 'processes lodge-init' 'processes lodge-keeper' 'find /run/lodge -name o-*'; do
		echo "$kind"
		[ -n "$($kind)" ] || return 1
	done
	! no_traces
}

freezes_by_file() {
	local pid
	pid=$(cat "$box"/cmd/x*/cgroup.procs)
	echo 1 >"$box/cgroup.freeze"
	wait_for grep -q 'frozen 1' "$box/cgroup.events" || return 1
	echo 0 >"$box/cgroup.freeze"
	wait_for grep -q 'frozen 0' "$box/cgroup.events" && [ -d "/proc/$pid" ]
}

inside_sees_no_host_path() {
	local got
	got=$(lodge run -- cat /proc/self/cgroup)
	echo "$got"
	[ -n "$got" ] && ! grep -q -e lodge -e '\.\.' <<<"$got"
}

inside_has_no_cgroup_files() {
	same '' "$(lodge run -- grep cgroup /proc/self/mountinfo)"
}

# shellcheck disable=SC2016 # for the shell inside
oom_score_stays() { # oom_score_stays [--root]
	output_is '500 500 refused 500' "$@" -c \
		'read -r a </proc/self/oom_score_adj; b=$(cat /proc/self/oom_score_adj)
		{ echo 499 >/proc/self/oom_score_adj; } 2>/dev/null && c=lowered || c=refused
		read -r d </proc/self/oom_score_adj; echo $a $b $c $d'
}

# The kernel starts the helper on the host, even for a process whose limit of cores is 0. With
# core_pipe_limit it waits for the helper before the crash is over.
crash_calls_no_helper() { # crash_calls_no_helper [--root]
	local limit calls
	# shellcheck disable=SC2016 # for the helper
	printf '#!/bin/sh\necho "$1" >>/run/cores\n' >/lodge/core-helper
	busybox chmod 755 /lodge/core-helper
	echo 4 >/proc/sys/kernel/core_pipe_limit
	echo '|/lodge/core-helper %e' >/proc/sys/kernel/core_pattern
	: >/run/cores
	for limit in 1 0 unlimited; do
		lodge run "$@" -c "ulimit -c $limit; sleep 777 & kill -SEGV \$!; wait \$!; echo \$?"
	done
	# shellcheck disable=SC2016 # for the other shell
	bash -c 'kill -SEGV $$' # of the host, to see that the helper works
	echo core >/proc/sys/kernel/core_pattern
	calls=$(</run/cores)
	rm /run/cores /lodge/core-helper
	same bash "$calls"
}

deadline_ends_all() {
	run_hits '"TIMEOUT"' --timeout 2s -c 'setsid sleep 777 & (setsid setsid sleep 778 &); (trap "" TERM HUP INT; sleep 779) & sleep 776' || return 1
	same '' "$(processes 'sleep 77')"
}

# shellcheck disable=SC2016 # for the shell inside
owners_are_right() {
	output_is '0:0 0:0 1000:1000 1000:1000' -c \
		'touch f; echo $(stat -c %u:%g / /etc/passwd /home/user f)'
}

# shellcheck disable=SC2016 # for the shell inside
root_inside_writes_and_gives_away() { # copies up files of the template, and owns the files it creates
	output_is '0:0 0:0 1000:1000 ok' --root -c \
		'touch /n /g && echo ok >>/etc/hosts && chown 1000:1000 /g && echo $(stat -c %u:%g /n /etc/hosts /g) $(tail -n 1 /etc/hosts)'
}

user_inside_may_not_write() {
	lodge run -c 'touch /n /etc/n /usr/n 2>&1; rm /etc/hosts; echo x >>/etc/hosts' >/tmp/log 2>&1
	cat /tmp/log
	same 5 "$(grep -c -e 'Permission denied' -e 'Read-only' /tmp/log)"
}

empty_template_starts() { # it has no programs, and the error must say so
	lodge run --template empty -- /bin/true
	same 127 $?
}

disk_limit() { # disk_limit STORE MESSAGE
	lodge run --store "$1" --disk 24M --require-limits -- dd if=/dev/zero of=f bs=1M count=60 >/tmp/log 2>&1
	cat /tmp/log
	grep -q "$2" /tmp/log
}

# shellcheck disable=SC2016 # for the shell inside
ordinary_user_runs_one() { # without the keeper's privileges, and here without its own cgroup
	mkdir -p /home/plain && chown 2000:2000 /home/plain
	same '1000 user' "$(busybox su plain -s /bin/bash -c 'HOME=/home/plain lodge run -c "touch f; echo \$(id -u) \$(stat -c %U f)"' 2>&1)"
}

volume_is_btrfs() {
	[ -s /var/lib/lodge/volume.btrfs ]
}

disk_below_the_limit() {
	output_is 8388608 --store disk --disk 24M -c 'dd if=/dev/zero of=f bs=1M count=8 2>/dev/null; stat -c %s f'
}

killed_keeper_is_cleaned_up_after() {
	local keeper
	start --store disk -c 'setsid sleep 777 & sleep 778' || return 1
	keeper=$(processes lodge-keeper | head -n 1) # the others are its children, and end with it
	echo "keeper $keeper"
	kill -9 "$keeper"
	finish
	[ -n "$(processes lodge-init)" ] && [ -n "$(groups)" ] && grep -q . /sys/block/loop*/loop/backing_file || return 1
	output_is next -- sh -c 'echo next' && nothing_is_left
}

killed_init_ends_everything() {
	start -c 'setsid sleep 777 & sleep 778' || return 1
	kill -9 "$(cat "$box/init/cgroup.procs")"
	finish
	nothing_is_left
}

background_ends() {
	stop
	nothing_is_left
}

sort /proc/self/mountinfo | cut -d' ' -f5 >/tmp/mounts.before
uname -r | sed 's/^/# kernel /'
check 'the machine has cgroup v2 and no other' only_v2
check 'a command runs and its status comes through' status_comes_through
check 'nothing is left of it' nothing_is_left
check 'a second one runs' status_comes_through
check 'doctor finds all it needs' lodge doctor
check 'too much memory is reported' run_hits LIMIT_MEMORY --memory 32M -- dd if=/dev/zero of=/dev/null bs=96M count=1
check 'swap is no way around it' no_swap_is_used
check 'files in memory count as memory' memory_of_files_counts
check 'less memory than that is fine' other_memory_is_untouched
check 'too many processes are reported' run_hits LIMIT_PIDS --pids 8 -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; wait'
check 'the limits are in the files' limits_are_written
check 'init and the command are in groups of their own' init_is_apart
check 'the limits belong to the host' limits_belong_to_the_host
check 'traces of it are seen' traces_are_seen
check 'the group freezes and thaws' freezes_by_file
check 'nothing is left when lodge is ended' background_ends
check 'output is charged to the group of init' output_is_charged_to_init
check 'freeze and thaw by the keeper' vm-driver freeze
check 'a frozen sandbox can be ended' vm-driver frozen-end
check 'limits of a live sandbox change' vm-driver limits
check 'a sandbox from the pool has the limits asked for' vm-driver pool
check 'nothing is left of these' nothing_is_left
check 'the inside sees no path of the host' inside_sees_no_host_path
check 'the inside has no cgroup file system' inside_has_no_cgroup_files
check 'a guest cannot lower its OOM score' oom_score_stays
check 'a root inside cannot either' oom_score_stays --root
check 'a crash inside starts no helper on the host' crash_calls_no_helper
check 'a crash of a root inside neither' crash_calls_no_helper --root
check 'a deadline ends those that went away' deadline_ends_all
check 'owners are right in the memory store' owners_are_right
check 'a root inside writes in the memory store' root_inside_writes_and_gives_away
check 'a user inside writes only its own' user_inside_may_not_write
check 'the empty template starts' empty_template_starts
check 'the memory store is bounded' disk_limit memory 'No space left'
check 'the disk store is bounded' disk_limit disk 'Disk quota exceeded'
check 'it is a btrfs volume' volume_is_btrfs
check 'less than the limit fits on the disk' disk_below_the_limit
check 'nothing is left of the disk' nothing_is_left
check 'what a killed keeper left, the next run removes' killed_keeper_is_cleaned_up_after
check 'a killed init takes all with it' killed_init_ends_everything
check 'an ordinary user runs one' ordinary_user_runs_one
check 'a run after all this' status_comes_through
check 'nothing is left in the end' nothing_is_left
echo "1..$n"
