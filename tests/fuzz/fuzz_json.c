/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out and in again: for any input jansson can parse the output, and valid text is unchanged.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_out j;
	json_t *back, *text;
	char *out;
	size_t len = 0;

	json_out_init(&j, 16 * size + 256);
	json_out_object(&j, NULL);
	json_out_bytes(&j, "text", data, size);
	json_out_base64(&j, "packed", data, size);
	json_out_array(&j, "list");
	json_out_u64(&j, NULL, size);
	json_out_end(&j);
	json_out_end(&j);
	out = json_out_take(&j, &len);
	must(out && json_is_utf8(out, len) && strlen(out) == len);
	back = json_loadb(out, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	must(back != NULL);
	text = json_object_get(back, "text");
	if (json_is_utf8(data, size))
		must(json_string_length(text) == size &&
		     !memcmp(json_string_value(text), data, size));
	must(json_string_length(json_object_get(back, "packed")) == (size + 2) / 3 * 4);
	json_decref(back);
	free(out);
	return 0;
}
