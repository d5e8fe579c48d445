/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"
#include "base/units.h"

enum { RING_UNIT = 4096 }; /* rings are whole pages: two of the largest must fit the share */

struct limits limits_default(void)
{
	return (struct limits){
		.memory_bytes = 512ull << 20,
		.disk_bytes = 1ull << 30,
		.inodes = 200000,
		.file_bytes = 1ull << 30,
		.output_bytes = 16ull << 20,
		.cpu_milli = 0,
		.cpu_weight = 100,
		.pids = 256,
		.open_files = 1024,
	};
}

uint64_t limits_output_share(uint64_t memory_bytes)
{
	const uint64_t min = LIMITS_MEMORY_MIN / 2;
	uint64_t half = memory_bytes / 2 / RING_UNIT * RING_UNIT;

	return half < min ? min : half;
}

uint64_t limits_output_max(uint64_t memory_bytes)
{
	uint64_t half = limits_output_share(memory_bytes) / 2 / RING_UNIT * RING_UNIT;

	return half < LIMITS_OUTPUT_MAX ? half : LIMITS_OUTPUT_MAX;
}

void limits_fit_output(struct limits *l)
{
	uint64_t max = limits_output_max(l->memory_bytes);

	if (l->output_bytes > max)
		l->output_bytes = max;
}

int limits_check_output(const struct limits *l, const char *prefix, struct err *err)
{
	uint64_t max = limits_output_max(l->memory_bytes);
	char most[SIZE_TEXT], memory[SIZE_TEXT];

	if (l->output_bytes <= max)
		return 0;
	return err_set(err, ERR_INVALID,
		       "%soutput_bytes: must be at most %s, a quarter of %smemory_bytes (%s)",
		       prefix, units_format(max, most), prefix,
		       units_format(l->memory_bytes, memory));
}

uint64_t limits_disk_reserve(uint64_t total_bytes)
{
	const uint64_t min = LIMITS_RESERVE_MIN, max = 512ull << 20;
	uint64_t part = total_bytes / 20;

	if (part < min)
		return min;
	return part > max ? max : part;
}

const char *limits_disk_variable(uint64_t disk_bytes, char buf[LIMITS_VARIABLE])
{
	snprintf(buf, LIMITS_VARIABLE, "LODGE_DISK_BYTES=%llu", (unsigned long long)disk_bytes);
	return buf;
}

enum bound_unit { COUNT, BYTES, CPUS };

struct bound {
	const char *name;
	uint64_t value, min, max;
	enum bound_unit unit; /* of the bounds, in messages */
};

/* Finds the first field that is out of bounds. */
static bool find_bad(const struct limits *l, struct bound *ret)
{
	const struct bound bounds[] = {
		{ "memory_bytes", l->memory_bytes, LIMITS_MEMORY_MIN, LIMITS_MEMORY_MAX, BYTES },
		{ "disk_bytes", l->disk_bytes, LIMITS_DISK_MIN, LIMITS_DISK_MAX, BYTES },
		{ "inodes", l->inodes, LIMITS_INODES_MIN, LIMITS_INODES_MAX },
		{ "file_bytes", l->file_bytes, LIMITS_FILE_MIN, LIMITS_DISK_MAX, BYTES },
		{ "output_bytes", l->output_bytes, LIMITS_OUTPUT_MIN, LIMITS_OUTPUT_MAX, BYTES },
		{ "cpu_milli", l->cpu_milli ? l->cpu_milli : LIMITS_CPU_MILLI_MIN,
		  LIMITS_CPU_MILLI_MIN, LIMITS_CPU_MILLI_MAX, CPUS },
		{ "cpu_weight", l->cpu_weight, 1, LIMITS_WEIGHT_MAX },
		{ "pids", l->pids, LIMITS_PIDS_MIN, LIMITS_PIDS_MAX },
		{ "open_files", l->open_files, LIMITS_FILES_MIN, LIMITS_FILES_MAX },
	};

	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		if (bounds[i].value >= bounds[i].min && bounds[i].value <= bounds[i].max)
			continue;
		*ret = bounds[i];
		return true;
	}
	return false;
}

const char *limits_bad_field(const struct limits *l)
{
	struct bound bad;

	return find_bad(l, &bad) ? bad.name : NULL;
}

int limits_check(const struct limits *l, const char *prefix, struct err *err)
{
	char min[SIZE_TEXT], max[SIZE_TEXT];
	struct bound bad;

	if (!find_bad(l, &bad))
		return 0;
	if (bad.unit == BYTES)
		return err_set(err, ERR_INVALID, "%s%s: must be between %s and %s", prefix,
			       bad.name, units_format(bad.min, min), units_format(bad.max, max));
	if (bad.unit == CPUS)
		return err_set(err, ERR_INVALID, "%s%s: must be between %g and %g cpus", prefix,
			       bad.name, (double)bad.min / 1000, (double)bad.max / 1000);
	return err_set(err, ERR_INVALID, "%s%s: must be between %llu and %llu", prefix, bad.name,
		       (unsigned long long)bad.min, (unsigned long long)bad.max);
}
