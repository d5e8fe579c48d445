/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "tap.h"

static struct seccomp_prog user, root;
static const uint64_t none[6];

static bool jump_taken(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGE:
		return a >= f->k;
	default:
		return (a & f->k) != 0;
	}
}

/* Runs the program as the kernel does. */
static uint32_t evaluate(const struct seccomp_prog *p, uint32_t arch, uint32_t nr,
			 const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };
	uint32_t a = 0, x = 0, mem = 0, word;

	memcpy(data.args, args, sizeof(data.args));
	for (size_t pc = 0; pc < p->len; pc++) {
		const struct sock_filter *f = &p->code[pc];

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&word, (const char *)&data + f->k, sizeof(word));
			a = word;
			break;
		case BPF_LD | BPF_IMM:
			a = f->k;
			break;
		case BPF_LD | BPF_MEM:
			a = mem;
			break;
		case BPF_ST:
			mem = a;
			break;
		case BPF_MISC | BPF_TAX:
			x = a;
			break;
		case BPF_MISC | BPF_TXA:
			a = x;
			break;
		case BPF_ALU | BPF_RSH | BPF_K:
			a >>= f->k;
			break;
		case BPF_ALU | BPF_RSH | BPF_X:
			a >>= x;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			pc += jump_taken(f, a) ? f->jt : f->jf;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

#define EVAL(p, nr, ...)                                                                           \
	evaluate(&(p), AUDIT_ARCH_X86_64, (uint32_t)(nr), (uint64_t[6]){ __VA_ARGS__ })

static void the_program_fits(void)
{
	seccomp_build(&user, false);
	seccomp_build(&root, true);
	CHECK(user.len <= SECCOMP_PROG_MAX && root.len <= SECCOMP_PROG_MAX);
}

static void everyday_calls_are_allowed(void)
{
	static const long calls[] = { SYS_read,	     SYS_write,	     SYS_execve, SYS_mmap,
				      SYS_futex,     SYS_wait4,	     SYS_openat, SYS_statx,
				      SYS_getrandom, SYS_exit_group, SYS_rseq,	 SYS_epoll_pwait2,
				      SYS_ptrace };

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		CHECK(EVAL(user, calls[i], 0) == SECCOMP_RET_ALLOW);
}

static void dangerous_calls_are_refused(void)
{
	static const long calls[] = { SYS_mount,
				      SYS_umount2,
				      SYS_pivot_root,
				      SYS_unshare,
				      SYS_setns,
				      SYS_bpf,
				      SYS_perf_event_open,
				      SYS_keyctl,
				      SYS_add_key,
				      SYS_request_key,
				      SYS_userfaultfd,
				      SYS_io_uring_setup,
				      SYS_kexec_load,
				      SYS_init_module,
				      SYS_finit_module,
				      SYS_open_by_handle_at,
				      SYS_name_to_handle_at,
				      SYS_settimeofday,
				      SYS_clock_settime,
				      SYS_fsopen,
				      SYS_open_tree,
				      SYS_move_mount,
				      SYS_mount_setattr,
				      SYS_swapon,
				      SYS_reboot,
				      SYS_iopl,
				      SYS_quotactl,
				      SYS_chroot,
				      SYS_pidfd_getfd,
				      SYS_kcmp,
				      SYS_fanotify_init,
				      SYS_syslog,
				      SYS_sethostname,
				      SYS_vhangup,
				      SYS_modify_ldt };

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		CHECK(EVAL(user, calls[i], 0) == (SECCOMP_RET_ERRNO | EPERM));
}

static void asynchronous_io_is_absent(void)
{
	static const long calls[] = { SYS_io_setup,  SYS_io_destroy, SYS_io_getevents,
				      SYS_io_submit, SYS_io_cancel,  SYS_io_pgetevents };

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		CHECK(EVAL(user, calls[i], 0) == (SECCOMP_RET_ERRNO | ENOSYS));
		CHECK(EVAL(root, calls[i], 0) == (SECCOMP_RET_ERRNO | ENOSYS));
	}
}

static void every_number_is_decided(void)
{
	for (uint32_t nr = 0; nr < 2048; nr++) {
		uint32_t r = EVAL(user, nr, 0);

		CHECK(r == SECCOMP_RET_ALLOW || (r & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO);
		if (nr >= 470)
			CHECK(r == (SECCOMP_RET_ERRNO | ENOSYS));
	}
}

static void foreign_abis_are_killed(void)
{
	CHECK(evaluate(&user, AUDIT_ARCH_I386, 1, none) == SECCOMP_RET_KILL_PROCESS);
	CHECK(EVAL(user, 0x40000000u + SYS_read, 0) == SECCOMP_RET_KILL_PROCESS);
}

static void namespaces_are_refused_by_clone_flag(void)
{
	static const uint64_t flags[] = { CLONE_NEWNS,	CLONE_NEWUSER, CLONE_NEWPID,   CLONE_NEWNET,
					  CLONE_NEWIPC, CLONE_NEWUTS,  CLONE_NEWCGROUP };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		CHECK(EVAL(user, SYS_clone, flags[i] | 17) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_clone, CLONE_VM | CLONE_VFORK | 17) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(root, SYS_clone3, 0) == (SECCOMP_RET_ERRNO | ENOSYS));
}

static void sockets_are_checked_by_family_type_and_protocol(void)
{
	CHECK(EVAL(user, SYS_socket, 1, 5) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_socket, 2, 1 | 02000000) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_socket, 10, 2, 17) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_socket, 16, 3, 0) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_socket, 16, 3, 6) != SECCOMP_RET_ALLOW); /* NETLINK_XFRM */
	CHECK(EVAL(user, SYS_socket, 2, 3, 1) != SECCOMP_RET_ALLOW); /* SOCK_RAW */
	CHECK(EVAL(user, SYS_socket, 2, 1, 132) != SECCOMP_RET_ALLOW); /* SCTP */
	CHECK(EVAL(user, SYS_socket, 17, 3, 0) != SECCOMP_RET_ALLOW); /* AF_PACKET */
	CHECK(EVAL(user, SYS_socket, 38, 5, 0) != SECCOMP_RET_ALLOW); /* AF_ALG */
	CHECK(EVAL(user, SYS_socket, 40, 1, 0) != SECCOMP_RET_ALLOW); /* AF_VSOCK */
	CHECK(EVAL(user, SYS_socketpair, 1, 1, 0) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_socketpair, 30, 5, 0) != SECCOMP_RET_ALLOW); /* AF_TIPC */
	CHECK(EVAL(user, SYS_setsockopt, 0, 6, 1) == SECCOMP_RET_ALLOW); /* TCP_NODELAY */
	CHECK(EVAL(user, SYS_setsockopt, 0, 6, 31) != SECCOMP_RET_ALLOW); /* TCP_ULP */
}

static void set_id_bits_are_for_the_root_class(void)
{
	CHECK(EVAL(user, SYS_chmod, 0, 0755) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_chmod, 0, 04755) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_fchmodat, 0, 0, 02755) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_openat, 0, 0, 0, 06644) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(root, SYS_chmod, 0, 04755) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(root, SYS_chroot, 0) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(root, SYS_mount, 0) == (SECCOMP_RET_ERRNO | EPERM));
}

static void only_own_limits_can_be_set(void)
{
	CHECK(EVAL(user, SYS_prlimit64, 0, 7, 0x1000) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_prlimit64, 1, 7, 0) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_prlimit64, 1, 7, 0x1000) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(root, SYS_prlimit64, 1, 7, 0x100000000ull) == (SECCOMP_RET_ERRNO | EPERM));
}

static void the_core_limit_cannot_be_set(void)
{
	const uint32_t without_effect = SECCOMP_RET_ERRNO | 0;

	CHECK(EVAL(user, SYS_setrlimit, RLIMIT_CORE, 0x1000) == without_effect);
	CHECK(EVAL(root, SYS_setrlimit, 0x100000000ull | RLIMIT_CORE, 0x1000) == without_effect);
	CHECK(EVAL(user, SYS_setrlimit, RLIMIT_NOFILE, 0x1000) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_prlimit64, 0, RLIMIT_CORE, 0x1000) == without_effect);
	CHECK(EVAL(root, SYS_prlimit64, 0, RLIMIT_CORE, 0x100000000ull) == without_effect);
	CHECK(EVAL(user, SYS_prlimit64, 0, RLIMIT_CORE, 0x1000, 0x100000000ull) ==
	      (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_prlimit64, 1, RLIMIT_CORE, 0x1000) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_prlimit64, 0, RLIMIT_CORE, 0, 0x1000) == SECCOMP_RET_ALLOW);
	CHECK(EVAL(user, SYS_getrlimit, RLIMIT_CORE, 0x1000) == SECCOMP_RET_ALLOW);
}

static void terminal_injection_is_refused(void)
{
	CHECK(EVAL(user, SYS_ioctl, 0, 0x5412) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_ioctl, 0, 0x100005412ull) == (SECCOMP_RET_ERRNO | EPERM));
	CHECK(EVAL(user, SYS_ioctl, 0, 0x5413) == SECCOMP_RET_ALLOW);
}

int main(void)
{
	RUN(the_program_fits);
	RUN(everyday_calls_are_allowed);
	RUN(dangerous_calls_are_refused);
	RUN(asynchronous_io_is_absent);
	RUN(every_number_is_decided);
	RUN(foreign_abis_are_killed);
	RUN(namespaces_are_refused_by_clone_flag);
	RUN(sockets_are_checked_by_family_type_and_protocol);
	RUN(set_id_bits_are_for_the_root_class);
	RUN(only_own_limits_can_be_set);
	RUN(the_core_limit_cannot_be_set);
	RUN(terminal_injection_is_refused);
	return tap_done();
}
