/* SPDX-License-Identifier: Apache-2.0 */
/* How a sandbox ended, as the record says it. */
#include "session_engine.h"

#include <signal.h>

#include "engine/internal.h"
#include "machine/machine.h"
#include "service/timers.h"
#include "session/probe.h"
#include "session/session.h"
#include "store/sqlite_db.h"

/* As on a full disk: the record of the end cannot be written for a while. */
static void how_it_ended_is_kept_until_it_is_stored(void)
{
	struct session_ref a = key("a");
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session *n = NULL;
	pid_t pid = 0;

	ENGINE();
	CHECK(enter_as("a", (struct session_opts){ .user = "ann" }, NULL) == 0);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	pid = sandbox_pid(n->machine->conn);
	session_unlock(n);
	CHECK(pid > 1 && kill(pid, SIGKILL) == 0);
	for (int i = 0; i < 2400 && session_is_valid(engine, &me, &a); i++)
		nap(50);
	CHECK(sqlite3_exec(
		      engine->store->sql,
		      "CREATE TEMP TRIGGER no_end BEFORE UPDATE ON session WHEN NEW.last_death "
		      "IS NOT NULL BEGIN SELECT RAISE(ABORT, 'no'); END",
		      NULL, NULL, NULL) == SQLITE_OK);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_HIBERNATING));
	CHECK(sqlite3_exec(engine->store->sql, "DROP TRIGGER no_end", NULL, NULL, NULL) ==
	      SQLITE_OK);
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(session_get(engine, &me, &a, &s, &err) == 0 && s.last_death &&
	      strstr(s.last_death, "\"killed\"") && strstr(s.last_death, "\"signal\":9"));
}

int main(void)
{
	make_home();
	RUN(how_it_ended_is_kept_until_it_is_stored);
	remove_home();
	return tap_done();
}
