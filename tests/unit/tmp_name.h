/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files below $TMPDIR, which every run of the tests has for itself. */
#ifndef LODGE_TESTS_TMP_NAME_H
#define LODGE_TESTS_TMP_NAME_H

#include <stdio.h>
#include <stdlib.h>

enum { TMP_NAME_SIZE = 96 };

/* A template for mkdtemp() and mkstemp(). Longer directories than a socket can be bound in are cut,
 * so that the call fails. */
static inline char *tmp_name(char path[TMP_NAME_SIZE], const char *name)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, TMP_NAME_SIZE, "%.64s/%s-XXXXXX", dir ? dir : "/var/tmp", name);
	return path;
}

#endif
