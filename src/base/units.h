/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, durations and shares as people write them. Exact integer arithmetic; anything that does
 * not fit is refused, never wrapped or rounded to something else. `what` names the place in the
 * error sentence ("--memory"). *ret is untouched on failure. */
#ifndef LODGE_BASE_UNITS_H
#define LODGE_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "4096", "256M", "1.5G", "256MiB", "512kb": powers of 1024, either case. */
int units_parse_bytes(const char *what, const char *text, uint64_t *ret, struct err *err);
/* "30s", "500ms", "1.5m", "2h", "1d"; a plain number is seconds. To milliseconds, rounded up. */
int units_parse_ms(const char *what, const char *text, uint64_t *ret, struct err *err);
/* "0.5" cores are 500. At most three places after the point. */
int units_parse_milli(const char *what, const char *text, uint64_t *ret, struct err *err);
/* Decimal digits only, min..max. */
int units_parse_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		      struct err *err);

/* The shortest exact form, "256M", else bytes: for messages. Returns buf. */
enum { SIZE_TEXT = 32 };
char *units_format(uint64_t bytes, char buf[SIZE_TEXT]);

#endif
