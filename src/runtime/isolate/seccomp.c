/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/test_hook.h"
#include "runtime/isolate/syscalls.h"

#define X32_BIT 0x40000000u
#define ALLOW SECCOMP_RET_ALLOW
#define EPERM_RET (SECCOMP_RET_ERRNO | EPERM)
#define ENOSYS_RET (SECCOMP_RET_ERRNO | ENOSYS)
#define NO_EFFECT (SECCOMP_RET_ERRNO | 0) /* the call returns 0 */

/* clone flags that make a namespace; NEWTIME shares its bit with the signal number and is not
 * reachable through clone(2). */
#define CLONE_NS_FLAGS                                                                             \
	(0x00020000u | 0x02000000u | 0x04000000u | 0x08000000u | 0x10000000u | 0x20000000u |       \
	 0x40000000u)
#define SETID_BITS 06000u

enum { WORDS = (SYSCALLS_KNOWN + 32) / 32 };

/* The calls that set a mode, and which argument it is. */
static const struct {
	long call;
	unsigned arg;
} modes[] = {
	{ SYS_chmod, 1 },     { SYS_fchmod, 1 }, { SYS_fchmodat, 2 },
	{ SYS_fchmodat2, 2 }, { SYS_mknod, 1 },	 { SYS_mknodat, 2 },
	{ SYS_creat, 1 },     { SYS_open, 2 },	 { SYS_openat, 3 },
};

static void emit(struct seccomp_prog *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->len < SECCOMP_PROG_MAX)
		p->code[p->len] = (struct sock_filter){ code, jt, jf, k };
	p->len++;
}

static void ret(struct seccomp_prog *p, uint32_t value)
{
	emit(p, BPF_RET | BPF_K, 0, 0, value);
}

static void load_arg(struct seccomp_prog *p, unsigned n)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
	     (uint32_t)(offsetof(struct seccomp_data, args) + n * sizeof(uint64_t)));
}

static void load_nr(struct seccomp_prog *p)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
}

/* if (nr == call) { the instructions emitted until rule_end() } ; A holds nr on both sides. */
static size_t rule_begin(struct seccomp_prog *p, long call)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)call);
	return p->len - 1;
}

/* The instruction at `at`, to set its jump. If the program is too long, seccomp_install() refuses
 * it as a whole. */
static struct sock_filter *patch(struct seccomp_prog *p, size_t at)
{
	static struct sock_filter nowhere;

	return at < SECCOMP_PROG_MAX ? &p->code[at] : &nowhere;
}

static void rule_end(struct seccomp_prog *p, size_t at)
{
	patch(p, at)->jf = (uint8_t)(p->len - at - 1);
}

/* Refuses `call` with `value` when (args[n] & bits) != 0, else allows it. */
static void rule_mask(struct seccomp_prog *p, long call, unsigned n, uint32_t bits, uint32_t value)
{
	size_t at = rule_begin(p, call);

	load_arg(p, n);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
	ret(p, value);
	ret(p, ALLOW);
	rule_end(p, at);
}

static void rule_always(struct seccomp_prog *p, long call, uint32_t value)
{
	size_t at = rule_begin(p, call);

	ret(p, value);
	rule_end(p, at);
}

/* `listed` if the low half of args[n] is one of `list`, else `other`. */
static void rule_list(struct seccomp_prog *p, long call, unsigned n, const uint32_t *list,
		      size_t count, uint32_t listed, uint32_t other)
{
	size_t at = rule_begin(p, call);

	load_arg(p, n);
	for (size_t i = 0; i < count; i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, list[i]);
		ret(p, listed);
	}
	ret(p, other);
	rule_end(p, at);
}

/* AF_UNIX any; AF_INET, AF_INET6 stream and datagram of TCP, UDP or ICMP echo; NETLINK_ROUTE. */
static void rule_socket(struct seccomp_prog *p)
{
	enum { AF_UNIX_ = 1, AF_INET_ = 2, AF_INET6_ = 10, AF_NETLINK_ = 16 };
	static const uint32_t protocols[] = { 0, 6, 17, 1, 58 };
	size_t at = rule_begin(p, SYS_socket), netlink;

	load_arg(p, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, AF_UNIX_);
	ret(p, ALLOW);
	netlink = rule_begin(p, AF_NETLINK_);
	load_arg(p, 2);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0 /* NETLINK_ROUTE */);
	ret(p, ALLOW);
	ret(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	rule_end(p, netlink);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, AF_INET_);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET6_);
	ret(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	load_arg(p, 1);
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf); /* without SOCK_NONBLOCK, SOCK_CLOEXEC */
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1 /* SOCK_STREAM */);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2 /* SOCK_DGRAM */);
	ret(p, EPERM_RET);
	load_arg(p, 2);
	for (size_t i = 0; i < ARRAY_LEN(protocols); i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, protocols[i]);
		ret(p, ALLOW);
	}
	ret(p, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
	rule_end(p, at);
}

/* No guest needs upper-layer protocols (espintcp, tls) of the kernel. */
static void rule_ulp(struct seccomp_prog *p)
{
	enum { SOL_TCP_ = 6, TCP_ULP_ = 31 };
	size_t at = rule_begin(p, SYS_setsockopt);

	load_arg(p, 1);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOL_TCP_);
	ret(p, ALLOW);
	load_arg(p, 2);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, TCP_ULP_);
	ret(p, SECCOMP_RET_ERRNO | ENOPROTOOPT);
	ret(p, ALLOW);
	rule_end(p, at);
}

/* Returns `value` if the pointer args[n] is NULL, so if both halves are zero. */
static void rule_null(struct seccomp_prog *p, unsigned n, uint32_t value)
{
	load_arg(p, n);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
	     (uint32_t)(offsetof(struct seccomp_data, args) + n * sizeof(uint64_t) + 4));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	ret(p, value);
}

/* Allows a process to change its own limits and to read those of others, but not to change them:
 * commands may run with the same uid as PID 1, whose limits must not change. RLIMIT_CORE must stay
 * 1 (see confine_core()): a change, mostly to 0, has no effect and succeeds, because programs such
 * as gpg end if it fails. It fails if the caller also asks for the old limit, which a filter cannot
 * return. */
static void rule_prlimit(struct seccomp_prog *p)
{
	size_t at = rule_begin(p, SYS_prlimit64);

	rule_null(p, 2, ALLOW);
	load_arg(p, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
	ret(p, EPERM_RET);
	load_arg(p, 1);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, RLIMIT_CORE);
	ret(p, ALLOW);
	rule_null(p, 3, NO_EFFECT);
	ret(p, EPERM_RET);
	rule_end(p, at);
}

static void rules_with_arguments(struct seccomp_prog *p, bool root_class)
{
	/* TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS; FS_IOC_SETFLAGS and FSSETXATTR (project ids) */
	static const uint32_t ioctls[] = { 0x5412, 0x541c, 0x5423, 0x541d, 0x40086602, 0x401c5820 };
	static const uint32_t personalities[] = { 0, 0x0040000, 0xffffffff };
	/* PR_SET_MM, PR_SET_SECUREBITS, PR_SET_PTRACER stays allowed, PR_SET_MDWE too */
	static const uint32_t prctls[] = { 35, 28 };

	rule_mask(p, SYS_clone, 0, CLONE_NS_FLAGS, EPERM_RET);
	/* A filter cannot read the flags and the mode, which are behind a pointer. lodge-init needs
	 * clone3 to start commands in their own cgroup and openat2 to resolve paths. For every
	 * command of the user class it adds a filter that refuses both (libc falls back to clone
	 * and openat). In the root class it cannot add a filter, and works without clone3. */
	rule_always(p, SYS_clone3, root_class ? ENOSYS_RET : ALLOW);
	rule_always(p, SYS_openat2, ALLOW);
	for (size_t i = 0; i < ARRAY_LEN(syscalls_absent); i++)
		rule_always(p, syscalls_absent[i], ENOSYS_RET);
	rule_socket(p);
	rule_list(p, SYS_socketpair, 0, &(uint32_t){ 1 /* AF_UNIX */ }, 1, ALLOW,
		  SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	rule_ulp(p);
	rule_prlimit(p);
	rule_list(p, SYS_setrlimit, 0, &(uint32_t){ RLIMIT_CORE }, 1, NO_EFFECT, ALLOW);
	rule_list(p, SYS_ioctl, 1, ioctls, ARRAY_LEN(ioctls), EPERM_RET, ALLOW);
	rule_list(p, SYS_prctl, 0, prctls, ARRAY_LEN(prctls), EPERM_RET, ALLOW);
	rule_list(p, SYS_personality, 0, personalities, ARRAY_LEN(personalities), ALLOW, EPERM_RET);
	if (root_class) {
		rule_always(p, SYS_chroot, ALLOW);
		return;
	}
	if (hook_weak("setuidbits"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		rule_mask(p, modes[i].call, modes[i].arg, SETID_BITS, EPERM_RET);
}

/* A = index of a word on entry: a binary search over [lo, hi) that ends in loading the word and
 * jumping to the instruction after the whole search, by way of the slots in `out`. */
static void search(struct seccomp_prog *p, const uint32_t *words, unsigned lo, unsigned hi,
		   size_t *out, size_t *count)
{
	size_t at;

	if (hi - lo == 1) {
		emit(p, BPF_LD | BPF_IMM, 0, 0, words[lo]);
		out[(*count)++] = p->len;
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		return;
	}
	at = p->len;
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 0, (lo + hi) / 2);
	search(p, words, lo, (lo + hi) / 2, out, count);
	patch(p, at)->jt = (uint8_t)(p->len - at - 1);
	search(p, words, (lo + hi) / 2, hi, out, count);
}

/* A = nr on entry; returns ALLOW when its bit is set, else goes on with A = nr. The kernel runs the
 * filter once for each number when it is installed, so the common way through must be short. */
static void bitmap(struct seccomp_prog *p, const uint32_t words[WORDS])
{
	size_t out[WORDS], count = 0;

	emit(p, BPF_MISC | BPF_TAX, 0, 0, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, 0, 0, 5);
	search(p, words, 0, WORDS, out, &count);
	for (size_t i = 0; i < count; i++)
		patch(p, out[i])->k = (uint32_t)(p->len - out[i] - 1);
	emit(p, BPF_ST, 0, 0, 0); /* the word; then X = nr & 31 */
	emit(p, BPF_MISC | BPF_TXA, 0, 0, 0);
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 31);
	emit(p, BPF_MISC | BPF_TAX, 0, 0, 0);
	emit(p, BPF_LD | BPF_MEM, 0, 0, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_X, 0, 0, 0);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, 1);
	ret(p, ALLOW);
	load_nr(p);
}

/* The bitmap must not allow calls that an argument rule decides. */
static void fill_words(uint32_t words[WORDS], bool root_class)
{
	for (size_t i = 0; i < ARRAY_LEN(syscalls_allowed); i++)
		words[syscalls_allowed[i] / 32] |= 1u << (syscalls_allowed[i] % 32);
	for (size_t i = 0; !root_class && !hook_weak("setuidbits") && i < ARRAY_LEN(modes); i++)
		words[modes[i].call / 32] &= ~(1u << (modes[i].call % 32));
}

void seccomp_build(struct seccomp_prog *p, bool root_class)
{
	uint32_t words[WORDS] = { 0 };

	fill_words(words, root_class);
	p->len = 0;
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
	ret(p, SECCOMP_RET_KILL_PROCESS);
	load_nr(p);
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
	ret(p, SECCOMP_RET_KILL_PROCESS);
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, SYSCALLS_KNOWN);
	ret(p, ENOSYS_RET);
	bitmap(p, words);
	rules_with_arguments(p, root_class);
	ret(p, EPERM_RET);
}

int seccomp_install(const struct seccomp_prog *p)
{
	struct seccomp_prog copy = *p; /* the kernel's interface is not const */
	struct sock_fprog fprog = { .len = (unsigned short)p->len, .filter = copy.code };

	if (p->len > SECCOMP_PROG_MAX)
		return -E2BIG;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return -errno;
	return 0;
}
