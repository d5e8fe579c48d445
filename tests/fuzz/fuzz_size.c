/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, times, shares: any text. A number that is accepted must survive its own printed form. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256], again[SIZE_TEXT];
	uint64_t v = 0, w = 0;
	struct err err;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!units_parse_bytes("x", text, &v, &err)) {
		snprintf(again, sizeof(again), "%" PRIu64, v);
		must(!units_parse_bytes("x", again, &w, &err) && v == w);
		units_format(v, again);
	} else {
		must(v == 0 && err.code == ERR_INVALID);
	}
	units_parse_ms("x", text, &w, &err);
	units_parse_milli("x", text, &w, &err);
	if (!units_parse_count("x", text, 5, 50, &w, &err))
		must(w >= 5 && w <= 50);
	return 0;
}
