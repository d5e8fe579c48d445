/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/limit_note.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

enum unit { UNIT_BYTES, UNIT_COUNT, UNIT_MS };

static void print(uint64_t n, enum unit unit, char buf[SIZE_TEXT])
{
	if (unit == UNIT_BYTES)
		units_format(n, buf);
	else if (unit == UNIT_COUNT)
		snprintf(buf, SIZE_TEXT, "%llu", (unsigned long long)n);
	else if (n % 1000)
		snprintf(buf, SIZE_TEXT, "%llu ms", (unsigned long long)n);
	else
		snprintf(buf, SIZE_TEXT, "%llu s", (unsigned long long)n / 1000);
}

void limit_note_print(const char *name, const struct limits *l, uint32_t timeout_ms)
{
	const struct {
		const char *name;
		uint64_t limit;
		enum unit unit;
		const char *before, *unknown, *after;
	} all[] = {
		{ "TIMEOUT", timeout_ms, UNIT_MS, "still running after ", "its time", ", ended" },
		{ "LIMIT_MEMORY", l->memory_bytes, UNIT_BYTES, "more than ", "there is",
		  " was needed, a process was ended" },
		{ "LIMIT_PIDS", l->pids, UNIT_COUNT, "more than ", "so many",
		  " processes and threads were refused" },
		{ "LIMIT_OUTPUT", l->output_bytes, UNIT_BYTES, "more than ", "is kept",
		  " was written, the oldest is lost" },
		{ "LIMIT_DISK", l->disk_bytes, UNIT_BYTES, "the disk is full, it holds ", "no more",
		  "" },
		{ "LIMIT_FILE", l->file_bytes, UNIT_BYTES, "a file would have grown beyond ",
		  "its limit", "" },
	};
	char text[SIZE_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(all[i].name, name) != 0)
			continue;
		print(all[i].limit, all[i].unit, text);
		fprintf(stderr, "lodge: %s: %s%s%s\n", name, all[i].before,
			all[i].limit ? text : all[i].unknown, all[i].after);
	}
}
