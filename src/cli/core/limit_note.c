/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/limit_note.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

enum unit { UNIT_BYTES, UNIT_COUNT, UNIT_MS };

static void format(uint64_t n, enum unit unit, char buf[SIZE_TEXT])
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
		const char *what, *before, *after, *effect;
	} all[] = {
		{ "TIMEOUT", timeout_ms, UNIT_MS, "timed out", " after ", "",
		  ": all its processes were killed" },
		{ "LIMIT_MEMORY", l->memory_bytes, UNIT_BYTES, "out of memory", " (limit ", ")",
		  ": a process was killed" },
		{ "LIMIT_PIDS", l->pids, UNIT_COUNT, "process limit reached", " (", ")",
		  ": new processes were refused" },
		{ "LIMIT_OUTPUT", l->output_bytes, UNIT_BYTES, "output limit reached", " (", ")",
		  ": the oldest output was discarded" },
		{ "LIMIT_DISK", l->disk_bytes, UNIT_BYTES, "disk full", " (limit ", ")", "" },
		{ "LIMIT_FILE", l->file_bytes, UNIT_BYTES, "file size limit reached", " (", ")",
		  "" },
	};
	char text[SIZE_TEXT] = "";

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool known = all[i].limit != 0;

		if (strcmp(all[i].name, name) != 0)
			continue;
		if (known)
			format(all[i].limit, all[i].unit, text);
		fprintf(stderr, "lodge: %s: %s%s%s%s%s\n", name, all[i].what,
			known ? all[i].before : "", text, known ? all[i].after : "", all[i].effect);
	}
}
