/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a sandbox about its environment: any bytes. The result can be stored and contains
 * no secret. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "template/environment_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *out = NULL;
	const char *name;
	json_t *found, *value;
	struct err err;

	must(copy != NULL);
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (environment_parse(copy, size, "mark", &out, &err) == 0) {
		found = json_loads(out, 0, NULL);
		must(json_is_object(found) && json_is_object(json_object_get(found, "tools")));
		json_object_foreach (json_object_get(found, "env"), name, value)
			must(!environment_is_secret(name) ||
			     strcmp(json_string_value(value), "[redacted]") == 0);
		json_decref(found);
		free(out);
	}
	free(copy);
	return 0;
}
