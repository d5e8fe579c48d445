/* SPDX-License-Identifier: Apache-2.0 */
/* What it looks like inside a sandbox of a template: environment, tools, system. Found out once by
 * asking a sandbox made for that, kept in the store, and told from there without starting
 * anything. Values of names that sound like secrets are never kept. */
#ifndef LODGE_TEMPLATE_ENVIRONMENT_H
#define LODGE_TEMPLATE_ENVIRONMENT_H

#include "engine/name_lock.h"
#include "engine/engine.h"
#include "engine/environment_request.h"

struct environment {
	struct store_environment found; /* data: an object of pwd, kernel, os, tools, env */
	bool current; /* template and machine are still those it was found with */
};
void environment_fini(struct environment *v);

/* ERR_NOT_FOUND: no such template, or nobody looked yet; the sentence tells which. */
int environment_get(struct engine *e, const char *template, struct environment *ret,
		    struct err *err);
/* Looks now. ERR_CONFLICT: there is no shell that could be asked. */
int environment_capture(struct engine *e, const char *template, struct environment *ret,
			struct err *err);

/* ---- for the engine --------------------------------------------------------------------------
 */

void environment_sweep(struct engine *e);
/* Between the two nobody looks, so that no sandbox is in the way of who removes the template. */
void environment_lock(struct engine *e, struct name_lock *l, const char *template);
void environment_drop(struct engine *e, const char *template); /* the template is gone */

/* ---- what the sandbox said -------------------------------------------------------------------
 */

/* Whether the value of this variable is nobody's business. */
bool environment_is_secret(const char *name);
/* The text of environment_script for its marker into `data` of the record, the caller's.
 * ERR_UNAVAILABLE: it is not whole. */
int environment_read(const char *text, size_t len, const char *marker, char **ret, struct err *err);
extern const char environment_script[]; /* of sh; $1 is the marker */

#endif
