/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects by path: dots lead into objects, and "" is the value itself. */
#ifndef LODGE_CLI_CORE_MEMBER_H
#define LODGE_CLI_CORE_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"

DEFINE_AUTO(json_t *, json_decref);
#define auto_json auto_call(json_decref)

json_t *member_get(const json_t *j, const char *path); /* NULL: none; borrowed */
const char *member_text(const json_t *j, const char *path); /* "": none */
int64_t member_number(const json_t *j, const char *path); /* -1: none */
bool member_is(const json_t *j, const char *path, const char *text);
bool member_true(const json_t *j, const char *path);
/* Sets one, and makes the objects it is in. Takes over value; NULL fails. */
int member_set(json_t *j, const char *path, json_t *value);
/* Sorts an array as qsort() does; `compare` gets pointers to values. -1: out of memory. */
int member_sort(json_t *array, int (*compare)(const void *, const void *));

#endif
