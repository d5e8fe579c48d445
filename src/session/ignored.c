/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ignored.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "session/session_spec.h"

DEFINE_AUTO(json_t *, json_decref);

static bool differs(const char *requested, const char *held)
{
	return requested && strcmp(requested, held ? held : "") != 0;
}

static void compare_names(const struct session_opts *w, const struct store_session *s,
			  struct session_fields *ret)
{
	const struct {
		enum session_field field;
		const char *requested, *held;
	} names[] = {
		{ SESSION_FIELD_USER, w->user, s->user },
		{ SESSION_FIELD_TEMPLATE, w->template, s->template },
		{ SESSION_FIELD_SNAPSHOT, w->snapshot, s->snapshot },
		{ SESSION_FIELD_POLICY, w->policy, s->policy },
		{ SESSION_FIELD_PROJECT, w->project, s->project },
		{ SESSION_FIELD_FRAGMENT, w->fragment, s->fragment },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (differs(names[i].requested, names[i].held))
			session_fields_add(ret, names[i].field);
}

static void compare_times(const struct session_opts *w, const struct store_session *s,
			  struct session_fields *ret)
{
	int64_t keep = w->delete_after_ms == SESSION_KEEP ? 0 : w->delete_after_ms;
	const struct {
		enum session_field field;
		bool differs;
	} times[] = {
		{ SESSION_FIELD_IDLE,
		  w->idle_timeout_ms && w->idle_timeout_ms != s->idle_timeout_ms },
		{ SESSION_FIELD_LIFETIME, w->lifetime_ms && w->lifetime_ms != s->lifetime_ms },
		{ SESSION_FIELD_MAX_LIFETIME,
		  w->max_lifetime_ms && w->max_lifetime_ms != s->max_lifetime_ms },
		{ SESSION_FIELD_DELETE_AFTER, w->delete_after_ms && keep != s->delete_after_ms },
		{ SESSION_FIELD_ON_IDLE, w->has_on_idle && w->on_idle != s->on_idle },
		{ SESSION_FIELD_ON_EXPIRE, w->has_on_expire && w->on_expire != s->on_expire },
	};

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i].differs)
			session_fields_add(ret, times[i].field);
}

/* By value: the order of the members does not matter. */
static bool metadata_differs(const char *requested, const char *held)
{
	auto_call(json_decref) json_t *a = NULL, *b = NULL;

	if (!requested)
		return false;
	a = json_loads(requested, 0, NULL);
	b = json_loads(held ? held : "{}", 0, NULL);
	return !json_equal(a, b);
}

static void compare_limits(const struct template *over, const struct limits *held,
			   struct session_fields *ret)
{
	struct template now = { .limits = *held };

	for (unsigned i = 0; template_limit_name(i); i++)
		if (over->limits_set & 1u << i &&
		    template_limit_value(over, i) != template_limit_value(&now, i))
			session_fields_add_limit(ret, i);
}

static bool has_variable(const struct template *t, const char *assignment)
{
	for (size_t i = 0; i < t->nenv; i++)
		if (strcmp(t->env[i], assignment) == 0)
			return true;
	return false;
}

static void compare_spec(const struct template *over, const struct template *held,
			 struct session_fields *ret)
{
	if (differs(over->user, held->user))
		session_fields_add(ret, SESSION_FIELD_RUN_AS);
	if (differs(over->workdir, held->workdir))
		session_fields_add(ret, SESSION_FIELD_WORKDIR);
	if (over->class == KEEPER_CLASS_ROOT && held->class != KEEPER_CLASS_ROOT)
		session_fields_add(ret, SESSION_FIELD_CLASS);
	for (size_t i = 0; i < over->nenv; i++)
		if (!has_variable(held, over->env[i]))
			session_fields_add(ret, SESSION_FIELD_ENV);
}

struct session_fields ignored_fields(struct engine *e, const struct session_opts *w,
				     const struct store_session *s)
{
	struct session_fields ret = { 0 };
	auto_fini(template_fini) struct template held;
	struct limits limits;
	struct err unreadable;

	template_init(&held);
	compare_names(w, s, &ret);
	compare_times(w, s, &ret);
	if (metadata_differs(w->metadata, s->metadata))
		session_fields_add(&ret, SESSION_FIELD_METADATA);
	if (!w->overrides)
		return ret;
	session_limits(e, s, &limits);
	compare_limits(w->overrides, &limits, &ret);
	if (spec_load(e, s, &held, &unreadable) == 0)
		compare_spec(w->overrides, &held, &ret);
	return ret;
}
