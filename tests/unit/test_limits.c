/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/limits.h"

#include <string.h>

#include "tap.h"

#define MIB (1ull << 20)

static void output_takes_half_of_the_memory(void)
{
	CHECK(limits_output_share(512 * MIB) == 256 * MIB);
	CHECK(limits_output_share(64 * MIB) == 32 * MIB);
	CHECK(limits_output_share(LIMITS_MEMORY_MIN) == 2 * MIB);
	CHECK(limits_output_share(1) == 2 * MIB);
	CHECK(limits_output_share(64 * MIB + 9001) == 32 * MIB + 4096);
}

static void two_rings_of_any_size_fit_the_share(void)
{
	for (uint64_t n = LIMITS_MEMORY_MIN; n <= LIMITS_MEMORY_MAX; n += n / 3 + 1) {
		CHECK(2 * limits_output_max(n) <= limits_output_share(n));
		CHECK(limits_output_max(n) % 4096 == 0 && limits_output_share(n) % 4096 == 0);
		CHECK(limits_output_max(n) <= 64 * MIB);
		/* as a count of pages in struct agent_bind */
		CHECK(limits_output_share(n) / 4096 <= UINT32_MAX);
	}
	CHECK(limits_output_max(32 * MIB) == 8 * MIB && limits_output_max(1024 * MIB) == 64 * MIB);
}

static void a_default_is_lowered_to_what_fits(void)
{
	struct limits l = limits_default();

	limits_fit_output(&l);
	CHECK(l.output_bytes == 16 * MIB);
	l.memory_bytes = 32 * MIB;
	limits_fit_output(&l);
	CHECK(l.output_bytes == 8 * MIB);
	l.output_bytes = 4096;
	limits_fit_output(&l);
	CHECK(l.output_bytes == 4096);
}

static void more_than_fits_names_both_fields(void)
{
	struct limits l = limits_default();
	struct err err = { 0 };

	CHECK(limits_check_output(&l, "limits.", &err) == 0);
	l.memory_bytes = 32 * MIB;
	CHECK(limits_check_output(&l, "limits.", &err) == -1 && err.code == ERR_INVALID);
	CHECK_STR(err.msg, "limits.output_bytes: must be at most 8M, a quarter of "
			   "limits.memory_bytes (32M)");
	l.output_bytes = 8 * MIB;
	CHECK(limits_check_output(&l, "limits.", &err) == 0);
	l = limits_default();
	l.output_bytes = 64 * MIB + 1;
	CHECK(limits_check(&l, "limits.", &err) == -1);
	CHECK_STR(err.msg, "limits.output_bytes: must be between 4K and 64M");
}

int main(void)
{
	RUN(output_takes_half_of_the_memory);
	RUN(two_rings_of_any_size_fit_the_share);
	RUN(a_default_is_lowered_to_what_fits);
	RUN(more_than_fits_names_both_fields);
	return tap_done();
}
