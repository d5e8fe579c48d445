/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/quantity.h"

#include <stdbool.h>
#include <string.h>

#include "base/units.h"

static bool has_no_unit(const char *text)
{
	size_t n = strspn(text, "0123456789.");

	return n && !text[n] && strspn(text, "0.") != n;
}

int quantity_ms(const char *option, const char *text, uint64_t *ret, struct err *err)
{
	if (has_no_unit(text))
		return err_set(err, ERR_INVALID,
			       "%s %.20s: needs a unit, as %.20ss, %.20sm or %.20sh", option, text,
			       text, text, text);
	return units_parse_ms(option, text, ret, err);
}

int quantity_bytes(const char *option, const char *text, uint64_t *ret, struct err *err)
{
	if (has_no_unit(text))
		return err_set(err, ERR_INVALID,
			       "%s %.20s: needs a unit, as %.20sM or %.20sG (%.20sB: bytes)",
			       option, text, text, text, text);
	return units_parse_bytes(option, text, ret, err);
}
