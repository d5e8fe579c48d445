/* SPDX-License-Identifier: Apache-2.0 */
/* The list of allowed system calls as one small BPF program: a bitmap of numbers and a few checks
 * of arguments. The keeper builds it at its start; installing it takes about 50 us per sandbox. At
 * installation the kernel runs the filter once per system call number, so a linear list of 350
 * rules would take ten times as long (docs/decisions/0002). */
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

/* Installs it on the calling thread. 0 or -errno. */
int seccomp_install(const struct seccomp_prog *prog);

#endif
