/* SPDX-License-Identifier: Apache-2.0 */
/* Written for the header of version 0.1, which is beside it. Arguments: the home. */
#include <lodge.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, lodge_last_error());
	return 1;
}

static int use_exec(struct lodge *l, const struct lodge_ref *me)
{
	struct lodge_command c = { .size = sizeof(c), .text = "echo out; exit 4", .once = "again" };
	struct lodge_exec *x, *same;

	if (lodge_exec_start(l, me, &c, &x) < 0 || lodge_exec_start(l, me, &c, &same) < 0)
		return fail("start");
	if (strcmp(lodge_exec_id(x), lodge_exec_id(same)) != 0)
		return fail("once");
	if (lodge_exec_wait(x, 60000) < 0 || !lodge_exec_ended(x))
		return fail("wait");
	lodge_exec_close(x);
	lodge_exec_close(same);
	return 0;
}

int main(int argc, char **argv)
{
	struct lodge_options o = { .size = sizeof(o), .home = argc > 1 ? argv[1] : NULL };
	struct lodge_ref me = { .key = "old" };
	struct lodge_want w = { .size = sizeof(w), .keys = &me, .nkeys = 1 };
	struct lodge_command c = { .size = sizeof(c),
				   .text = "echo hi; exit 3",
				   .timeout_ms = 60000 };
	struct lodge_session *s;
	struct lodge_result *r;
	struct lodge *l;

	w.once = "enter";
	if (lodge_open(&o, &l) < 0 || lodge_enter(l, &w, &s) < 0 || lodge_run(l, &me, &c, &r) < 0)
		return fail("run");
	printf("%d %u %d %s", r->code, r->hits, r->status, r->out);
	lodge_free(r);
	if (use_exec(l, &me) || lodge_destroy(l, &me, NULL, NULL) < 0)
		return 1;
	lodge_free(s);
	lodge_close(l);
	return 0;
}
