/* SPDX-License-Identifier: Apache-2.0 */
/* Events that belong to no session: who changed keys, policies and templates. */
#ifndef LODGE_ENGINE_AUDIT_H
#define LODGE_ENGINE_AUDIT_H

#include "base/err.h"
#include "store/store.h"

struct engine;

/* tenant "": of the service itself. */
int audit_write(struct engine *e, const char *tenant, const char *kind, const char *actor,
		const char *text, struct err *err);
/* The same inside WITH_STORE(). */
int audit_append(struct store *st, int64_t now, const char *tenant, const char *kind,
		 const char *actor, const char *text, struct err *err);

#endif
