/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a template: variables, tools, operating system. It is captured once in a
 * sandbox made for that purpose, stored, and read without starting a sandbox. Values of variables
 * whose names look like secrets are never stored. */
#ifndef LODGE_TEMPLATE_ENVIRONMENT_H
#define LODGE_TEMPLATE_ENVIRONMENT_H

#include "engine/name_lock.h"
#include "engine/engine.h"
#include "sandbox/template/template.h"
#include "engine/environment_request.h"

struct environment {
	struct store_environment record; /* data: JSON object with pwd, kernel, os, tools, env */
	bool current; /* template and host have not changed since the capture */
};
void environment_fini(struct environment *v);

/* ERR_NOT_FOUND: no such template, or not captured yet; the message says which. */
int environment_get(struct engine *e, const char *template, struct environment *ret,
		    struct err *err);
/* Captures now. ERR_CONFLICT: the template has no shell. */
int environment_capture(struct engine *e, const char *template, struct environment *ret,
			struct err *err);

/* ---- internal ---------------------------------------------------------------------------- */

/* Starts a requested capture in the background, if capacity is free. */
void environment_sweep(struct engine *e);
/* Prevents captures, so that no sandbox uses a template while it is deleted. */
void environment_lock(struct engine *e, struct name_lock *l, const char *template);
void environment_delete(struct engine *e, const char *template); /* of a deleted template */

#endif
