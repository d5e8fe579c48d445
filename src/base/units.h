/* SPDX-License-Identifier: Apache-2.0 */
/* Parses sizes, durations and fractions with exact integer arithmetic: values out of range are
 * errors, never wrapped. `what` names the option in the error ("--memory"). *ret is unchanged on
 * failure. */
#ifndef LODGE_BASE_UNITS_H
#define LODGE_BASE_UNITS_H

#include <stdint.h>

#include "base/err.h"

/* "4096", "256M", "1.5G", "256MiB", "512kb": powers of 1024, either case. */
int units_parse_bytes(const char *what, const char *text, uint64_t *ret, struct err *err);
/* "30s", "500ms", "1.5m", "2h", "1d"; a plain number is seconds. To milliseconds, rounded up. */
int units_parse_ms(const char *what, const char *text, uint64_t *ret, struct err *err);
/* "0.5" is 500. At most three decimal places. */
int units_parse_milli(const char *what, const char *text, uint64_t *ret, struct err *err);
/* Decimal digits only, min..max. */
int units_parse_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		      struct err *err);

/* Formats a size for messages: the shortest exact form, such as "256M", else bytes. Returns buf. */
enum { SIZE_TEXT = 32 };
char *units_format(uint64_t bytes, char buf[SIZE_TEXT]);
/* The same for a time: "30m", "36h", "1d", else milliseconds as "1500ms". */
char *units_format_ms(uint64_t ms, char buf[SIZE_TEXT]);

#endif
