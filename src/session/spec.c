/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's sandboxes are like: its template, and what the session says over it. */
#include <stdlib.h>
#include <string.h>

#include "session/inside.h"

DEFINE_AUTO(struct template *, template_fini);

int spec_load(struct engine *e, const struct store_session *s, struct template *ret,
	      struct err *err)
{
	struct template base, over;
	auto_call(template_fini) struct template *guard_base = &base;
	auto_call(template_fini) struct template *guard_over = &over;

	template_init(&base);
	template_init(&over);
	if (template_load(e->home, *s->template ? s->template : "host", &base, err) < 0)
		return -1;
	if (s->spec && template_parse("session", s->spec, strlen(s->spec), &over, err) < 0)
		return -1;
	if (template_merge(&base, &over, err) < 0)
		return -1;
	(void)guard_over;
	template_fini(ret);
	*ret = base;
	guard_base = NULL;
	return 0;
}
