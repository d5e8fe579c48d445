/* SPDX-License-Identifier: Apache-2.0 */
/* usage: lodge-soak HOME LODGE CYCLES [SEED] -- started by tests/soak/run */
#include "soak.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "sandbox/keeper_client.h"

enum { POOL = 4, CHECK_EVERY = 500, FAILURES_MAX = 10 };

static volatile sig_atomic_t
	stopped; /* by a signal; existing sandboxes still have to be destroyed */

static void on_signal(int signo)
{
	(void)signo;
	stopped = 1;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int die(const char *what, const struct err *err)
{
	fprintf(stderr, "soak: %s: %s\n", what, err->msg);
	return 1;
}

static int open_share(struct soak *s, struct err *err)
{
	char path[4200];
	FILE *f;

	snprintf(path, sizeof(path), "%s.share", s->home);
	if (mkdir(path, 0755) < 0)
		return err_set(err, ERR_INTERNAL, "%s", path);
	s->share = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s.share/word", s->home);
	f = fopen(path, "we");
	if (s->share < 0 || !f)
		return err_set(err, ERR_INTERNAL, "%s", path);
	fputs("shared\n", f);
	fclose(f);
	return 0;
}

static int start(struct soak *s, struct err *err)
{
	struct keeper_client_opts opts = { .program = getenv("LODGE_KEEPER"), .home = s->home };
	unsigned features;

	if (open_share(s, err) < 0 || keeper_client_spawn(&opts, &s->keeper, err) < 0 ||
	    keeper_client_features(s->keeper, &features, err) < 0)
		return -1;
	s->has_pool = features & KEEPER_HAS_ROOT;
	s->has_disk = features & KEEPER_HAS_ROOT;
	s->has_cgroup = features & KEEPER_HAS_CGROUP;
	s->keeper_pid = proc_child(getpid(), "lodge-keeper");
	if (!s->keeper_pid || !proc_run_dir(s->home, s->run, sizeof(s->run)))
		return err_set(err, ERR_NOT_FOUND, "the keeper's process or directory");
	return 0;
}

/* Full, so that two measurements are comparable. */
static int fill_pool(struct soak *s, struct err *err)
{
	struct keeper_pool want = { .min = POOL, .target = POOL, .max = POOL };
	struct keeper_pool_state st;

	return s->has_pool ? keeper_client_pool(s->keeper, want, &st, err) : 0;
}

static int empty_pool(struct soak *s, struct err *err)
{
	struct keeper_pool none = { 0, 0, 0 };
	struct keeper_pool_state st;

	return s->has_pool ? keeper_client_pool(s->keeper, none, &st, err) : 0;
}

static int look(struct soak *s, const struct gauges *base, long cycle, double since,
		struct gauges *ret, struct err *err)
{
	if (fill_pool(s, err) < 0)
		return -1;
	gauge_read(s, base, cycle, ret);
	printf("%ld cycles, %.0f/s", cycle, (double)cycle / (now_s() - since));
	gauge_print(ret);
	return 0;
}

/* Returns the number of failures, or -1 if it could not continue. The first part is warm-up, whose
 * result is the baseline. */
static int soak_cycles(struct soak *s, long cycles, struct err *err)
{
	long every = cycles < 4 * CHECK_EVERY ? (cycles + 3) / 4 : CHECK_EVERY;
	double since = now_s();
	struct gauges base = { 0 }, now = { 0 };
	bool has_base = false;
	int failures = 0;

	for (long i = 1; i <= cycles; i++) {
		if (stopped)
			return err_set(err, ERR_INTERNAL, "interrupted after %ld cycles", i - 1);
		if (cycle_run(s, err) < 0) {
			fprintf(stderr, "soak: cycle %ld: %s\n", i, err->msg);
			if (++failures >= FAILURES_MAX)
				return failures;
		}
		if (i % every != 0 && i != cycles)
			continue;
		if (look(s, has_base ? &base : NULL, i, since, &now, err) < 0)
			return -1;
		if (!has_base)
			base = now;
		has_base = true;
	}
	return failures + gauge_grown(&base, &now, cycles);
}

static void destroy_named(void *arg, const char *name)
{
	struct soak *s = arg;
	struct keeper_request r = keeper_client_request(KEEPER_DESTROY, name);
	struct err err;

	fprintf(stderr, "soak: left behind: %s\n", name);
	(void)keeper_client_call(s->keeper, &r, NULL, 0, NULL, NULL, &err);
}

int main(int argc, char **argv)
{
	struct soak s = { .share = -1 };
	long cycles = argc > 3 ? atol(argv[3]) : 0;
	struct err err = { 0 };
	int bad;

	if (argc < 4 || cycles < 4) {
		fprintf(stderr,
			"usage: lodge-soak HOME LODGE CYCLES [SEED]; started by tests/soak/run\n");
		return 2;
	}
	s.home = argv[1];
	s.lodge = argv[2];
	s.random = argc > 4 ? strtoull(argv[4], NULL, 10) | 1 : (uint64_t)time(NULL) | 1;
	printf("seed %llu\n", (unsigned long long)s.random);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (start(&s, &err) < 0 || cycle_warm_up(&s, &err) < 0 || fill_pool(&s, &err) < 0)
		return die("start", &err);
	bad = soak_cycles(&s, cycles, &err);
	if (bad < 0)
		die("stopped", &err);
	(void)empty_pool(&s, &err);
	proc_each_sandbox(s.home, destroy_named, &s);
	keeper_client_free(s.keeper);
	cycle_print();
	printf(bad ? "FAIL\n" : "PASS\n");
	return bad ? 1 : 0;
}
