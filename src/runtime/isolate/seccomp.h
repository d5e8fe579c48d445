/* SPDX-License-Identifier: Apache-2.0 */
/* The system call allow-list, as one small BPF program: a bitmap of allowed numbers behind a few
 * argument checks. Built in microseconds when the keeper starts, installed in about 50 us per
 * sandbox (the kernel runs a filter once per system call number when it is installed, so a linear
 * list of 350 rules would cost ten times that: docs/decisions/0002). */
#ifndef LODGE_RUNTIME_ISOLATE_SECCOMP_H
#define LODGE_RUNTIME_ISOLATE_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECCOMP_PROG_MAX = 320 };

struct seccomp_prog {
	size_t len;
	struct sock_filter code[SECCOMP_PROG_MAX];
};

/* `root_class` leaves setuid and setgid bits in modes alone (dpkg needs them) and allows chroot. */
void seccomp_build(struct seccomp_prog *prog, bool root_class);

/* What the filter does with a call: runs the program as the kernel would. For tests. */
uint32_t seccomp_eval(const struct seccomp_prog *prog, uint32_t arch, uint32_t nr,
		      const uint64_t args[6]);

/* Installs it on the calling thread. 0 or -errno. */
int seccomp_install(const struct seccomp_prog *prog);

#endif
