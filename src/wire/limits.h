/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one sandbox. Every field is always set; none can be unlimited. */
#ifndef LODGE_WIRE_LIMITS_H
#define LODGE_WIRE_LIMITS_H

#include <stdint.h>

#include "base/err.h"

struct limits {
	uint64_t memory_bytes; /* swap is always 0 */
	uint64_t disk_bytes;
	uint64_t inodes;
	uint64_t file_bytes; /* size of a single file that a command writes */
	uint64_t output_bytes; /* retained of each output stream of one command */
	uint32_t cpu_milli; /* hard quota, 1000 = one core; 0 = share only */
	uint32_t cpu_weight; /* share under contention, 1..10000, 100 = normal */
	uint32_t pids;
	uint32_t open_files; /* per process */
};

/* The bounds of every field. The keeper and every parser of limits check them. */
#define LIMITS_MEMORY_MIN (4ull << 20)
#define LIMITS_MEMORY_MAX (1ull << 44)
#define LIMITS_DISK_MIN (1ull << 20)
#define LIMITS_DISK_MAX (1ull << 46)
#define LIMITS_INODES_MIN 64ull
#define LIMITS_INODES_MAX (1ull << 32)
#define LIMITS_FILE_MIN 4096ull
#define LIMITS_OUTPUT_MIN 4096ull
#define LIMITS_OUTPUT_MAX (64ull << 20)
#define LIMITS_CPU_MILLI_MIN 10u
#define LIMITS_CPU_MILLI_MAX 1024000u
#define LIMITS_WEIGHT_MAX 10000u
#define LIMITS_PIDS_MIN 4u
#define LIMITS_PIDS_MAX 4194304u
#define LIMITS_FILES_MIN 16u
#define LIMITS_FILES_MAX 1048576u

/* Added to `pids` in the kernel, because they are not the guest's: lodge-init, and a subreaper or a
 * spare shell. */
#define LIMITS_OWN_PIDS 2u

struct limits limits_default(void);

/* The output rings of running commands are memory of the host beside memory_bytes: all rings of a
 * sandbox together take this much at most, and one ring of the two that a command has at most
 * limits_output_max(). */
uint64_t limits_output_share(uint64_t memory_bytes);
uint64_t limits_output_max(uint64_t memory_bytes);
/* Lowers output_bytes to limits_output_max(). Defaults and stored limits may be higher. */
void limits_fit_output(struct limits *l);
/* ERR_INVALID that names both fields, after `prefix`, if output_bytes is above that. */
int limits_check_output(const struct limits *l, const char *prefix, struct err *err);

/* What lodge leaves free on a file system of this size, unless the setting disk_reserve says
 * otherwise. */
#define LIMITS_RESERVE_MIN (1ull << 20)
#define LIMITS_RESERVE_MAX (1ull << 40)
uint64_t limits_disk_reserve(uint64_t total_bytes);

/* "LODGE_DISK_BYTES=N": the variable that tells commands the disk limit of their sandbox, because
 * df(1) shows the file system of all. Returns buf. */
enum { LIMITS_VARIABLE = 48 };
const char *limits_disk_variable(uint64_t disk_bytes, char buf[LIMITS_VARIABLE]);

/* NULL, or the name of the first field that is out of bounds ("memory_bytes"). */
const char *limits_bad_field(const struct limits *l);
/* The same as an error ERR_INVALID that names the field, after `prefix`, and its bounds. */
int limits_check(const struct limits *l, const char *prefix, struct err *err);

#endif
