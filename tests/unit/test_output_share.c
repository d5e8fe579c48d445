/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the output of running commands, with a real keeper and real sandboxes. */
#include "exec_cases.h"

#include "machine/output_share.h"
#include "sandbox/guest_exec_log.h"
#include "session/reconcile.h"
#include "session/session.h"
#include "session/session_spec.h"

#define MIB (1ull << 20)

static const struct exec_opts waiting = { .text = "read x", .stdin_open = true };

/* A session "a" of 16 MiB, so the share of its output is 8 MiB. */
#define SMALL()                                                                                    \
	do {                                                                                       \
		if (why_not)                                                                       \
			SKIP(why_not);                                                             \
		clean();                                                                           \
		CHECK(open_busy() && enter_small());                                               \
	} while (0)

static bool enter_small(void)
{
	struct template over;

	template_init(&over);
	if (template_set_limit(&over, "memory_bytes", 16 * MIB, &err) == 0 &&
	    enter_as("a", (struct session_opts){ .user = "ann", .overrides = &over }, NULL) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static struct exec_opts asking(uint64_t bytes)
{
	struct exec_opts o = waiting;

	o.output_bytes = bytes;
	return o;
}

static bool is_refused(struct exec_opts o)
{
	struct session_ref a = key("a");
	struct exec_handle *x = NULL;

	if (exec_start(engine, &me, &a, &o, &x, NULL, &err) == 0) {
		exec_close(x);
		return false;
	}
	printf("# %s\n", err.msg);
	return err.code == ERR_LIMIT && err.sys == GUEST_EXEC_NO_OUTPUT;
}

static size_t count_records(void)
{
	struct session_ref a = key("a");
	struct store_exec_list l;
	size_t n;

	if (exec_list(engine, &me, &a, (struct store_page){ .limit = 100 }, &l, &err) < 0)
		return 999;
	n = l.count;
	store_exec_list_fini(&l);
	return n;
}

static void a_command_gets_what_it_asks_for_or_is_refused(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct exec_opts keyed = asking(4096);

	SMALL();
	x = begin(asking(4 * MIB));
	CHECK(x && x->record->log_bytes == 4 * MIB);
	CHECK(x->record->machine->output_reserved == 8 * MIB);
	keyed.idempotency_key = "again";
	CHECK(is_refused(asking(4096)) && is_refused(waiting) && is_refused(keyed));
	CHECK(strstr(err.msg, "8M of 8M") && strstr(err.msg, "limits.memory_bytes"));
	CHECK(count_records() == 1); /* no trace of them */
	CHECK(exec_write_stdin(x, NULL, 0, true, &err) == 0 && ends(x, EXEC_EXITED));
	y = begin(keyed);
	CHECK(y && y->record->log_bytes == 4096);
}

/* The memory of a command that ended is there for the next one. */
static void commands_after_each_other_do_not_add_up(void)
{
	SMALL();
	for (int i = 0; i < 20; i++) {
		struct exec_handle *x = begin((struct exec_opts){
			.text = "head -c 4M /dev/zero; head -c 4M /dev/zero >&2",
			.output_bytes = 4 * MIB });

		CHECK(x && x->record->log_bytes == 4 * MIB && ends(x, EXEC_EXITED));
		exec_close(x);
	}
}

static void rings_that_nobody_asked_for_become_smaller(void)
{
	struct exec_handle *all[64];
	uint64_t sum = 0, last = UINT64_MAX;
	size_t n = 0;

	SMALL();
	for (; n < 64; n++) {
		struct session_ref a = key("a");

		if (exec_start(engine, &me, &a, &waiting, &all[n], NULL, &err) < 0)
			break;
		CHECK(all[n]->record->log_bytes <= last);
		last = all[n]->record->log_bytes;
		sum += 2 * last;
	}
	CHECK(n > 10 && n < 64 && err.sys == GUEST_EXEC_NO_OUTPUT);
	CHECK(last == 64 << 10 && sum <= 8 * MIB && sum > 7 * MIB);
	while (n > 0)
		exec_close(all[--n]);
}

static void one_ring_costs_half(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct exec_opts o = asking(4 * MIB);

	SMALL();
	o.merge = true;
	x = begin(o);
	CHECK(x && x->record->machine->output_reserved == 4 * MIB);
}

static void the_limit_of_a_session_is_no_demand(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	auto_call(exec_close) struct exec_handle *z = NULL;
	struct session_ref a = key("a");
	struct template over;

	SMALL();
	template_init(&over);
	CHECK(template_set_limit(&over, "output_bytes", 3 * MIB, &err) == 0);
	CHECK(session_change(engine, &me, &a, &(struct session_patch){ .limits = &over }, NULL,
			     NULL, &err) == 0);
	x = begin(waiting);
	y = begin(waiting);
	CHECK(x && x->record->log_bytes == 2 * MIB && y && y->record->log_bytes == 1 * MIB);
	z = begin(waiting);
	CHECK(z && z->record->log_bytes == MIB / 2 && is_refused(asking(3 * MIB)));
}

static void the_next_engine_counts_what_runs(void)
{
	struct session_ref a = key("a");
	struct store_session s;
	struct machine *v;
	uint64_t used = 0;

	SMALL();
	exec_close(begin(asking(4 * MIB)));
	CHECK(open_busy() && look("a", &s) == SESSION_ACTIVE);
	v = session_find_machine(engine, s.id);
	CHECK(v && v->output_reserved == 8 * MIB);
	CHECK(is_refused(waiting));
	machine_unref(v);
	CHECK(session_output_memory(engine, &me, &a, &used, &err) == 0 && used > 0);
}

static void memory_in_use_is_counted(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct session_ref a = key("a");
	uint64_t used = 0;
	struct exec_opts o = { .text = "head -c 3M /dev/zero; echo end >&2; read x",
			       .stdin_open = true,
			       .output_bytes = 2 * MIB };

	SMALL();
	x = begin(o);
	CHECK(x);
	for (uint64_t start = 0, end = 0; end < 4;) {
		(void)exec_wait_output(x, UINT64_MAX, end, 1000);
		exec_output_range(x, GUEST_EXEC_ERR, &start, &end);
	}
	CHECK(session_output_memory(engine, &me, &a, &used, &err) == 0);
	CHECK(used >= 2 * MIB && used <= 2 * MIB + 64 * 1024);
	CHECK(exec_write_stdin(x, NULL, 0, true, &err) == 0 && ends(x, EXEC_EXITED));
	exec_write_ended(engine, true);
	CHECK(session_output_memory(engine, &me, &a, &used, &err) == 0 && used == 0);
	CHECK(x->record->machine->output_reserved == 0);
}

static int change_limits(const char *name, uint64_t value, const char *second, uint64_t other)
{
	struct session_ref a = key("a");
	struct template over;

	template_init(&over);
	if (template_set_limit(&over, name, value, &err) < 0 ||
	    (second && template_set_limit(&over, second, other, &err) < 0))
		return -1;
	return session_change(engine, &me, &a, &(struct session_patch){ .limits = &over }, NULL,
			      NULL, &err);
}

static uint64_t shown_output(void)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct limits l = { 0 };

	if (session_get(engine, &me, &(struct session_ref){ .key = "a" }, &s, &err) == 0)
		session_limits(engine, &s, &l);
	return l.output_bytes;
}

static void a_changed_memory_changes_the_share(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;

	SMALL();
	CHECK(shown_output() == 4 * MIB);
	CHECK(change_limits("memory_bytes", 64 * MIB, NULL, 0) == 0 && shown_output() == 16 * MIB);
	x = begin(asking(16 * MIB));
	CHECK(x && x->record->machine->output_reserved == 32 * MIB);
	CHECK(x && !template_has_limit(&x->record->machine->spec, "output_bytes"));
	CHECK(change_limits("output_bytes", 16 * MIB + 1, NULL, 0) == -1);
	CHECK(err.code == ERR_INVALID && strstr(err.msg, "limits.memory_bytes (64M)"));
	CHECK(change_limits("output_bytes", 16 * MIB, NULL, 0) == 0);
	CHECK(change_limits("memory_bytes", 32 * MIB, NULL, 0) == -1);
	CHECK(strstr(err.msg, "limits.output_bytes: must be at most 8M"));
	CHECK(change_limits("pids", 99, NULL, 0) == 0 && shown_output() == 16 * MIB);
	CHECK(change_limits("memory_bytes", 32 * MIB, "output_bytes", MIB) == 0);
	CHECK(shown_output() == MIB && is_refused(waiting)); /* the one of before still runs */
}

/* What an older version stored. */
static void larger_rings_of_before_are_lowered(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct session_ref a = key("a");
	struct session *n = NULL;

	SMALL();
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(session_lock_reconciled(engine, &me, &a, 0, &n, &err) == 0);
	if (n) {
		auto_fini(store_session_fini) struct store_session s = { 0 };

		CHECK(store_session_copy(&n->rec, &s, &err) == 0);
		free(s.spec);
		s.spec = strdup("{\"limits\":{\"memory_bytes\":16777216,"
				"\"output_bytes\":1099511627776}}");
		CHECK(session_update(n, &s, "change", &err) == 0);
		session_unlock(n);
	}
	x = begin(waiting);
	CHECK(x && x->record->log_bytes == 2 * MIB && shown_output() == 4 * MIB);
	/* the limit of before does not refuse other changes */
	CHECK(change_limits("memory_bytes", 32 * MIB, NULL, 0) == 0 && shown_output() == 8 * MIB);
	CHECK(change_limits("pids", 99, NULL, 0) == 0);
	CHECK(change_limits("output_bytes", 9 * MIB, NULL, 0) == -1);
}

int main(void)
{
	make_home();
	RUN(a_command_gets_what_it_asks_for_or_is_refused);
	RUN(commands_after_each_other_do_not_add_up);
	RUN(rings_that_nobody_asked_for_become_smaller);
	RUN(one_ring_costs_half);
	RUN(the_limit_of_a_session_is_no_demand);
	RUN(the_next_engine_counts_what_runs);
	RUN(memory_in_use_is_counted);
	RUN(a_changed_memory_changes_the_share);
	RUN(larger_rings_of_before_are_lowered);
	remove_home();
	return tap_done();
}
