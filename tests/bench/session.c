/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: entering by outcome, and whether operations on all files depend on their number. The
 * homes are next to that of the bench: one on the volume, one with plain directories. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "proc.h"
#include "engine/engine.h"
#include "sandbox/template/template.h"
#include "session/session_api.h"
#include "service/engine_open.h"
#include "snapshot/snapshot.h"
#include "exec/exec_lookup.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "sandbox/guest_exec_sync.h"
#include "../unit/exec_run.h"

enum { SETTLE_US = 300000, CROWD = 5000 };

static const struct caller caller = { "bench", "bench" };

static const struct {
	const char *name, *text;
} sizes[] = {
	{ "few", "for i in $(seq 10); do echo $i > f$i; done" },
	/* 20,000 files, 500 MB */
	{ "many", "python3 -c \"import os\nb = os.urandom(25000)\nfor i in range(20000):\n"
		  " os.makedirs(f'd{i // 100}', exist_ok=True)\n"
		  " open(f'd{i // 100}/{i}', 'wb').write(b)\" && sync" },
};

struct place {
	const char *name;
	struct engine *e;
	char home[256];
};

static void open_place(const struct bench *b, struct place *p, const char *name, unsigned pool)
{
	struct engine_opts o = { .home = p->home,
				 .keeper_program = getenv("LODGE_KEEPER"),
				 .pool = pool };
	char store[300];
	struct err err;

	p->name = name;
	snprintf(p->home, sizeof(p->home), "%s.%s", b->home, name);
	snprintf(store, sizeof(store), "%s/store", p->home);
	(void)mkdir(p->home, 0700);
	if (strcmp(name, "dir") == 0)
		(void)mkdir(store, 0711);
	must(engine_open(&o, &p->e, &err), &err, "engine_open");
}

static struct session_ref ref_of(const char *key)
{
	return (struct session_ref){ .key = key };
}

static enum session_outcome enter(struct place *p, const char *key)
{
	struct template over;
	struct store_binding b = { .kind = "key" };
	struct session_opts w = { .keys = &b, .nkeys = 1, .overrides = &over };
	enum session_outcome outcome;
	struct session_enter_result r;
	struct err err;

	template_init(&over);
	must(template_set_limit(&over, "disk_bytes", 4ull << 30, &err), &err, "limit");
	snprintf(b.key, sizeof(b.key), "%s", key);
	must(session_enter(p->e, &caller, &w, &r, &err), &err, "session_enter");
	outcome = r.outcome;
	session_enter_result_fini(&r);
	return outcome;
}

static void run(struct place *p, const char *key, const char *text)
{
	struct session_ref ref = ref_of(key);
	struct exec_opts w = { .text = text };
	struct guest_exec_output o;
	struct err err;

	must(exec_run(p->e, &caller, &ref, &w, NULL, 0, &o, &err), &err, "run");
	if (o.result.code != 0)
		must(-1, NULL, o.err);
	guest_exec_output_fini(&o);
}

static void hibernate(struct place *p, const char *key)
{
	struct session_ref ref = ref_of(key);
	struct err err;

	must(session_hibernate(p->e, &caller, &ref, 0, NULL, &err), &err, "hibernate");
}

static void destroy(struct place *p, const char *key)
{
	struct session_ref ref = ref_of(key);
	struct err err;

	must(session_destroy(p->e, &caller, &ref, NULL, NULL, &err), &err, "destroy");
}

static void put(const struct place *p, const char *what, const char *part, int round, double t0)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", what, p->name);
	put_sample(name, "lodge", part, round, now_us() - t0);
}

/* ---- entering -------------------------------------------------------------------------------- */

static void enter_round(const struct bench *b, struct place *p, int round)
{
	for (int i = 0; i < b->n; i++) {
		double t0 = now_us();

		enter(p, "e");
		put(p, "enter", "created", round, t0);
		run(p, "e", "echo hi");
		put(p, "enter", "created_out", round, t0);
		t0 = now_us();
		enter(p, "e");
		put(p, "enter", "reused", round, t0);
		t0 = now_us();
		run(p, "e", "echo hi");
		put(p, "run", "end", round, t0);
		hibernate(p, "e");
		pause_us(GAP_US);
		t0 = now_us();
		enter(p, "e");
		put(p, "enter", "resumed", round, t0);
		run(p, "e", "echo hi");
		put(p, "enter", "resumed_out", round, t0);
		destroy(p, "e");
		pause_us(GAP_US);
	}
}

/* ---- few and many files ---------------------------------------------------------------------- */

static void fork_once(struct place *p, const char *key, const char *size, int round)
{
	struct session_ref ref = ref_of(key);
	struct store_binding to = { .kind = "key", .key = "fork" };
	struct store_session s;
	double t0 = now_us();
	struct err err;

	must(session_fork(p->e, &caller, &ref, NULL, 1, &to, &s, &err), &err, "fork");
	put(p, "fork", size, round, t0);
	store_session_fini(&s);
	destroy(p, "fork");
}

static void snapshot_once(struct place *p, const char *key, const char *size, int round)
{
	struct session_ref ref = ref_of(key);
	struct snapshot_opts w = { .name = NULL };
	struct store_snapshot s;
	double t0 = now_us();
	struct err err;

	must(session_snapshot(p->e, &caller, &ref, &w, &s, &err), &err, "snapshot");
	put(p, "snapshot", size, round, t0);
	must(snapshot_remove(p->e, &caller, s.id, &err), &err, "snapshot_remove");
}

/* On plain directories a live copy copies all files, so the hibernated session is measured there.
 */
static void files_round(const struct bench *b, struct place *p, size_t size, int round)
{
	const char *name = sizes[size].name;
	bool live = strcmp(p->name, "dir") != 0;

	for (int i = 0; i < b->n / 4 + 1; i++) {
		double t0;

		run(p, name, "echo changed > changed");
		if (live) {
			snapshot_once(p, name, name, round);
			fork_once(p, name, name, round);
		}
		t0 = now_us();
		hibernate(p, name);
		put(p, "hibernate", name, round, t0);
		if (!live) {
			snapshot_once(p, name, name, round);
			fork_once(p, name, name, round);
		}
		pause_us(SETTLE_US);
		t0 = now_us();
		enter(p, name);
		put(p, "resume", name, round, t0);
	}
}

static void files(const struct bench *b, struct place *p)
{
	int rounds = b->rounds < 3 ? b->rounds : 3;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		enter(p, sizes[i].name);
		run(p, sizes[i].name, sizes[i].text);
		hibernate(p, sizes[i].name);
	}
	pause_us(3000000); /* until the data is on the disk */
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		enter(p, sizes[i].name);
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
			files_round(b, p, i, r);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		destroy(p, sizes[i].name);
}

/* ---- many sessions --------------------------------------------------------------------------- */

static double enter_crowd(struct place *p, int from, int to)
{
	double t0 = now_us();

	for (int i = from; i < to; i++) {
		char key[32];

		snprintf(key, sizeof(key), "c%d", i);
		enter(p, key);
	}
	return (now_us() - t0) / (to - from);
}

static void crowd(struct place *p)
{
	struct session_cleanup c;
	double first, last, rss;
	struct err err;

	first = enter_crowd(p, 0, 100);
	(void)enter_crowd(p, 100, CROWD - 100);
	last = enter_crowd(p, CROWD - 100, CROWD);
	rss = (double)proc_kb(getpid(), "status", "VmRSS:");
	put_value("sessions/first_us", first);
	put_value("sessions/last_us", last);
	put_value("sessions/count", CROWD);
	put_value("sessions/rss_kb", rss);
	pause_us(1000000);
	{
		struct rusage u0, u1;

		getrusage(RUSAGE_SELF, &u0);
		pause_us(10000000);
		getrusage(RUSAGE_SELF, &u1);
		put_value("sessions/idle_cpu_percent",
			  ((double)(u1.ru_utime.tv_sec - u0.ru_utime.tv_sec) * 1e6 +
			   (double)(u1.ru_utime.tv_usec - u0.ru_utime.tv_usec) +
			   (double)(u1.ru_stime.tv_sec - u0.ru_stime.tv_sec) * 1e6 +
			   (double)(u1.ru_stime.tv_usec - u0.ru_stime.tv_usec)) /
				  1e5);
	}
	must(session_cleanup(p->e, &caller, NULL, &c, &err), &err, "cleanup");
	session_cleanup_fini(&c);
}

void session_run(const struct bench *b)
{
	static const char *const names[] = { "volume", "dir" };
	struct rlimit files_max;

	if (getrlimit(RLIMIT_NOFILE, &files_max) == 0) {
		files_max.rlim_cur = files_max.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files_max);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct place p;

		open_place(b, &p, names[i], 0);
		enter(&p, "warm");
		destroy(&p, "warm");
		for (int r = 0; r < b->rounds; r++)
			enter_round(b, &p, r);
		files(b, &p);
		if (b->big && i == 0)
			crowd(&p);
		engine_close(p.e);
	}
}
