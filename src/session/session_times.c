/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session_times.h"

#include "base/units.h"
#include "engine/internal.h"

struct bound {
	int64_t ms;
	const char
		*policy; /* NULL: of the service, by this setting of lodged or option of liblodge */
	const char *setting, *option;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct bound find_bound(const struct engine *e, const struct store_policy *p, bool idle)
{
	int64_t of_policy = idle ? p->idle_timeout_ms : p->max_lifetime_ms;
	struct bound b = { .ms = idle ? e->opts.idle_max_ms : e->opts.lifetime_max_ms,
			   .setting = idle ? "idle_timeout_max" : "lifetime_max",
			   .option = idle ? "idle_max_ms" : "lifetime_max_ms" };

	if (of_policy && of_policy < b.ms) {
		b.ms = of_policy;
		b.policy = p->name;
	}
	return b;
}

static int refuse(const struct engine *e, const char *field, const struct bound *b, struct err *err)
{
	char most[SIZE_TEXT];

	units_format_ms((uint64_t)b->ms, most);
	if (b->policy)
		return err_set(err, ERR_INVALID, "%s: must be at most %s (policy \"%s\")", field,
			       most, b->policy);
	return err_set(err, ERR_INVALID, "%s: must be at most %s (%s)", field, most,
		       e->opts.library ? b->option : b->setting);
}

static int apply_one(const struct engine *e, const struct store_policy *p, enum session_field field,
		     const int64_t *requested, struct session_fields *adjusted, int64_t *ret,
		     struct err *err)
{
	struct bound b = find_bound(e, p, field == SESSION_FIELD_IDLE);

	if (!requested)
		return 0;
	if (*requested <= 0)
		return err_set(err, ERR_INVALID, "%s: must be positive", session_field_name(field));
	if (*requested > b.ms && !adjusted)
		return refuse(e, session_field_name(field), &b, err);
	if (*requested > b.ms)
		session_fields_add(adjusted, field);
	*ret = smaller(*requested, b.ms);
	return 0;
}

void session_times_default(struct engine *e, const struct store_policy *policy, int64_t lifetime_ms,
			   struct store_session *s)
{
	struct bound idle = find_bound(e, policy, true), life = find_bound(e, policy, false);

	s->idle_timeout_ms = smaller(
		policy->idle_timeout_ms ? policy->idle_timeout_ms : e->opts.idle_ms, idle.ms);
	s->max_lifetime_ms = life.ms;
	s->lifetime_ms = smaller(lifetime_ms ? lifetime_ms : e->opts.lifetime_ms, life.ms);
	s->delete_after_ms = e->opts.delete_after_ms;
}

int session_times_apply(struct engine *e, const struct store_policy *policy,
			const struct session_times *t, struct session_fields *adjusted,
			struct store_session *s, struct err *err)
{
	char most[SIZE_TEXT];

	if (apply_one(e, policy, SESSION_FIELD_IDLE, t->idle_timeout_ms, adjusted,
		      &s->idle_timeout_ms, err) < 0 ||
	    apply_one(e, policy, SESSION_FIELD_MAX_LIFETIME, t->max_lifetime_ms, adjusted,
		      &s->max_lifetime_ms, err) < 0 ||
	    apply_one(e, policy, SESSION_FIELD_LIFETIME, t->lifetime_ms, adjusted, &s->lifetime_ms,
		      err) < 0)
		return -1;
	if (t->lifetime_ms && s->lifetime_ms > s->max_lifetime_ms)
		return err_set(err, ERR_INVALID,
			       "lifetime_ms: must be at most max_lifetime_ms (%s)",
			       units_format_ms((uint64_t)s->max_lifetime_ms, most));
	if (t->delete_after_ms &&
	    (*t->delete_after_ms < 0 || *t->delete_after_ms > SESSION_TIME_MAX_MS))
		return err_set(err, ERR_INVALID, "delete_after_ms: must be between 0 and %lld",
			       (long long)SESSION_TIME_MAX_MS);
	if (t->delete_after_ms)
		s->delete_after_ms = *t->delete_after_ms;
	return 0;
}
