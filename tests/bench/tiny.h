/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that prints hi: one page, no library, no start-up code. It is the lower
 * bound for starting a process on this machine. */
#ifndef LODGE_TESTS_BENCH_TINY_H
#define LODGE_TESTS_BENCH_TINY_H

#include "base/err.h"

int tiny_write(const char *path, struct err *err);

#endif
