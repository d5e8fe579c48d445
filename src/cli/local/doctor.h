/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of lodge doctor. Each probe uses the feature, in a child process that it may change.
 */
#ifndef LODGE_CLI_LOCAL_DOCTOR_H
#define LODGE_CLI_LOCAL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum { DOCTOR_TEXT = 256 };

enum doctor_need {
	DOCTOR_NEEDED,
	DOCTOR_OPTIONAL, /* the advice says what is lost without it */
};

/* 0: found. -errno: missing. May fill `detail` in either case. */
typedef int doctor_fn(int arg, char detail[DOCTOR_TEXT]);

struct doctor_check {
	const char *name;
	enum doctor_need need;
	doctor_fn *probe;
	int arg;
	const char *advice; /* how to fix it */
};

/* Each ends with an entry without a name. */
extern const struct doctor_check doctor_namespaces[];
extern const struct doctor_check doctor_kernel[];
extern const struct doctor_check doctor_host[];

#endif
