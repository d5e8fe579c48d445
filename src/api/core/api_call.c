/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/api_call.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "api/core/auth.h"
#include "api/core/internal.h"
#include "session/session_api.h"

enum { HOLD_US = 1000000 };

bool api_is_draining(const struct api *a)
{
	return a->draining;
}

bool api_call_key_holds(struct api_call *c)
{
	int64_t now = clock_mono_us();

	if (!c->pass || now - c->held_at_us < HOLD_US)
		return true;
	c->held_at_us = now;
	return auth_holds(c->pass);
}

bool api_call_key_expires(const struct api_call *c)
{
	return c->pass && c->pass->key.expires_at;
}

int api_take(struct api_call *c, enum tenant_resource what, uint64_t amount, struct err *err)
{
	return c->caller.tenant
		       ? tenant_load_take(c->engine, c->caller.tenant, what, amount, &c->share, err)
		       : 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct detached {
	struct api_call *c;
	int (*step)(void *arg);
	void *arg;
};

static int step_detached(void *arg)
{
	const struct detached *d = arg;

	return d->step(d->arg);
}

static void end_detached(void *arg)
{
	struct api_call *c = ((const struct detached *)arg)->c;

	c->release(c);
}

void api_call_detach(struct api_call *c, int (*step)(void *arg), void *arg)
{
	static const struct http_stream_ops ops = { step_detached, end_detached };
	struct detached *d;

	if (strcmp(http_method(c->rq), "HEAD") == 0) /* which has its answer */
		return;
	d = arena_alloc(c->arena, sizeof(*d));
	if (!d) {
		http_stream_abort(c->rq);
		return;
	}
	*d = (struct detached){ c, step, arg };
	c->detached = true;
	/* from here on it is one of the tenant's streams; for its key it is still in flight */
	tenant_load_release(&c->share, TENANT_REQUESTS);
	tenant_load_release(&c->share, TENANT_BODIES);
	http_stream_detach(c->rq, &ops, d);
}

/* ---- state of a call ------------------------------------------------------------------------- */

bool api_is_cancelled(struct api_call *c)
{
	return api_is_draining(c->api) || http_is_gone(c->rq) || !api_call_key_holds(c);
}

bool api_is_own(const struct api_call *c, const char *session, const char *user)
{
	return (!*c->session || strcmp(c->session, session) == 0) &&
	       (!*c->user || strcmp(c->user, user) == 0);
}

static int fail_not_found(const char *id, struct err *err)
{
	if (strncmp(id, "key:", 4) == 0)
		return err_set(err, ERR_NOT_FOUND, "no session with key '%.128s'", id + 4);
	return err_set(err, ERR_NOT_FOUND, "no session %.64s", id);
}

static int use_id(struct api_call *c, const char *id, struct session_ref *ret, struct err *err)
{
	*ret = (struct session_ref){ .id = arena_text(c->arena, id, strlen(id)) };
	return ret->id ? 0 : err_sys(err, ENOMEM, "session");
}

bool api_owns_ended(struct api_call *c, const struct session_ref *ref)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_ended_sandbox b;
	struct err ignored;

	return session_ended_sandbox(c->engine, &c->caller, ref, &b, &ignored) == 0 &&
	       session_get(c->engine, &c->caller, &(struct session_ref){ .id = b.session }, &s,
			   &ignored) == 0 &&
	       api_is_own(c, s.id, s.user);
}

/* Resolves a key to an id, because the key may move to another session. */
static int resolve_own(struct api_call *c, const char *id, struct session_ref *ref, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_tombstone t;
	struct err why;

	if (session_get(c->engine, &c->caller, ref, &s, &why) == 0) {
		if (!api_is_own(c, s.id, s.user))
			return fail_not_found(id, err);
		return session_ref_is_sandbox(ref) ? 0 : use_id(c, s.id, ref, err);
	}
	if (why.sys == ESTALE && session_tombstone(c->engine, &c->caller, ref, &t, &why) == 0)
		return api_is_own(c, t.session, t.user) ? use_id(c, t.session, ref, err)
							: fail_not_found(id, err);
	if (why.code == ERR_NOT_FOUND && !api_owns_ended(c, ref))
		return fail_not_found(id, err);
	*err = why;
	return -1;
}

int api_ref(struct api_call *c, const char *id, struct session_ref *ret, struct err *err)
{
	struct session_ref ref = { .id = id };

	if (strncmp(id, "key:", 4) == 0)
		ref = (struct session_ref){ .key = id + 4 };
	else if (strncmp(id, "ses_", 4) != 0 && !session_ref_is_sandbox(&ref))
		return err_set(err, ERR_NOT_FOUND,
			       "no session %.64s: ids start with ses_ or sbx_, keys are written "
			       "key:%.64s",
			       id, id);
	if ((*c->user || *c->session) && resolve_own(c, id, &ref, err) < 0)
		return -1;
	*ret = ref;
	return 0;
}

int api_session(struct api_call *c, struct store_session *ret, struct err *err)
{
	struct session_ref ref;

	return api_ref(c, c->params[0], &ref, err) < 0
		       ? -1
		       : session_get(c->engine, &c->caller, &ref, ret, err);
}

int api_may_see(struct api_call *c, const char *session, struct err *err)
{
	struct session_ref ref;

	if (!*c->user && !*c->session)
		return 0;
	return *session ? api_ref(c, session, &ref, err) : fail_not_found("of this name", err);
}
