/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of lodge doctor. Each probe really tries the thing, in a child of its own that may
 * change whatever it likes about itself. */
#ifndef LODGE_CLI_LOCAL_DOCTOR_H
#define LODGE_CLI_LOCAL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum { DOCTOR_TEXT = 256 };

enum doctor_need {
	DOCTOR_NEEDED,
	DOCTOR_OPTIONAL, /* something is lost without it, and the advice says what */
};

/* 0: found. -errno: missing. `detail` may get a few words in either case. */
typedef int doctor_fn(int arg, char detail[DOCTOR_TEXT]);

struct doctor_check {
	const char *name;
	enum doctor_need need;
	doctor_fn *probe;
	int arg;
	const char *advice; /* when it is missing */
};

/* Each ends with an entry without a name. */
extern const struct doctor_check doctor_namespaces[]; /* doctor_ns.c */
extern const struct doctor_check doctor_kernel[]; /* doctor_kernel.c */
extern const struct doctor_check doctor_host[]; /* doctor_host.c */

#endif
