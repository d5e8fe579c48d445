/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of lodge doctor. Each probe uses the feature, in a child process that it may change.
 */
#ifndef LODGE_CLI_LOCAL_DOCTOR_H
#define LODGE_CLI_LOCAL_DOCTOR_H

enum { DOCTOR_TEXT = 256 };

struct doctor_check {
	const char *name; /* NULL ends the list */
	enum { NEEDED, OPTIONAL } need;
	const char *advice; /* how to fix it, or what is lost without it */
	int (*probe)(void); /* 0: found. -1: missing; errno says why, unless it set a detail */
	int namespace; /* without a probe: CLONE_NEW... */
};

extern const struct doctor_check doctor_checks[];

/* Probes in this process. 0: found; -1: missing. Sets ret_detail in either case. */
int doctor_probe(const struct doctor_check *c, char ret_detail[DOCTOR_TEXT]);

#endif
