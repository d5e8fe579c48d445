#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What Python's local mode costs per call over the engine it loads. Usage: sdk_local.py [BUILD] [RUNS]

Two ways: the same calls by a C program and then by Python, each in a process of its own; and inside Python, all of a call
less the time that liblodge itself had. The first differ by more than the overhead on a machine with other work; the second
is what is judged, by its median. The calls take turns, so that none finds its code in the caches. BUILD is one without
sanitizers."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "sdk/python"))

PROGRAM = r"""
#include <lodge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	struct lodge_options o = { .size = sizeof(o), .home = argv[1] };
	struct lodge_thread t = { .size = sizeof(t), .user = "u", .thread = "t" };
	int runs = atoi(argv[2]);
	struct lodge_session *s, *got;
	struct lodge_result *r;
	struct lodge_files *f;
	struct lodge *l;
	struct lodge_ref ref = { 0 };

	(void)argc;
	if (lodge_open(&o, &l) < 0 || lodge_thread_enter(l, &t, &s) < 0)
		return fprintf(stderr, "%s\n", lodge_last_error()), 1;
	ref.id = s->id;
	for (int i = 0; i < runs; i++) {
		double a = now(), b, c, d;

		if (lodge_get(l, &ref, &got) < 0)
			return 1;
		lodge_free(got);
		b = now();
		if (lodge_thread_files(l, &ref, &f) < 0)
			return 1;
		lodge_free(f);
		c = now();
		if (lodge_thread_run(l, &ref, "true", 30, &r) < 0)
			return 1;
		lodge_free(r);
		d = now();
		printf("%.3f %.3f %.3f\n", b - a, c - b, d - c);
	}
	lodge_cleanup(l, NULL, NULL);
	lodge_free(s);
	lodge_close(l);
	return 0;
}
"""
CALLS = ("get", "list_files", "execute true")


def by_c(build, home, runs):
    program = os.path.join(home, "program")
    subprocess.run(["cc", "-O2", "-x", "c", "-", f"-I{ROOT}/include", "-o", program, "-x", "none",
                    os.path.join(build, "liblodge.so"), f"-Wl,-rpath,{build}"], input=PROGRAM, text=True, check=True)
    out = subprocess.run([program, os.path.join(home, "c"), str(runs)], stdout=subprocess.PIPE, text=True, check=True)
    rows = [[float(x) for x in line.split()] for line in out.stdout.splitlines()]
    return [list(column) for column in zip(*rows)]


class Watched:
    """A function of the library that adds up the time spent in it."""

    def __init__(self, lib, name):
        self._lib, self._name, self._function, self.spent = lib, name, getattr(lib, name), 0.0
        setattr(lib, name, self)

    def __call__(self, *args):
        began = time.perf_counter()
        result = self._function(*args)
        self.spent += time.perf_counter() - began
        return result

    def restore(self):
        setattr(self._lib, self._name, self._function)


def by_python(home, runs):
    """Return the total time of each call, and the part of it outside the library."""
    os.environ["LODGE_DATA"] = os.path.join(home, "python")
    import lodge
    from lodge import _local

    client = lodge.SandboxClient("local")
    client.get_or_create_session("u", "t")
    threads, lib = client._threads, client._threads._engine.lib
    session = client.session_id
    calls = (lambda: threads._workspace(session), client.list_files, lambda: client.execute("true"))
    whole, over = [[], [], []], [[], [], []]
    for _ in range(runs):
        for n, call in enumerate(calls):
            began = time.perf_counter()
            call()
            whole[n].append((time.perf_counter() - began) * 1e6)
    watched = [Watched(lib, "lodge_" + name) for name in ("get", "thread_files", "thread_run", "free", "last_outcome")]
    for _ in range(runs):
        for n, call in enumerate(calls):
            for w in watched:
                w.spent = 0.0
            began = time.perf_counter()
            call()
            over[n].append((time.perf_counter() - began - sum(w.spent for w in watched)) * 1e6)
    for w in watched:
        w.restore()
    client.close()
    _local.shutdown()
    return whole, over


def main():
    build = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LODGE_BUILD_PLAIN", ROOT + "/build"))
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    os.environ["LODGE_LIB"] = os.path.join(build, "liblodge.so")
    home = tempfile.mkdtemp(prefix="lodge-bench-", dir="/var/tmp")
    for name in ("c", "python"):
        os.mkdir(os.path.join(home, name), 0o700)
    try:
        c = by_c(build, home, runs)
        whole, over = by_python(home, runs)
    finally:
        time.sleep(0.5)  # keepers exit
        shutil.rmtree(home, ignore_errors=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"| call (median of {runs}) | C, us | Python, us | of it outside liblodge, us | in the quietest tenth |")
    print("|---|---|---|---|---|")
    worst, calm = 0.0, 0.0
    for n, name in enumerate(CALLS):
        outside, quiet = statistics.median(over[n]), statistics.quantiles(over[n], n=10)[0]
        worst, calm = max(worst, outside), max(calm, quiet)
        print(f"| {name} | {statistics.median(c[n]):.1f} | {statistics.median(whole[n]):.1f} | {outside:.1f} | {quiet:.1f} |")
    for what, value in (("median", worst), ("quietest tenth", calm)):
        print(f"{'met' if value < 50 else 'MISSED'} by the {what}: below 50 us per call (the worst has {value:.1f})")
    return 0 if worst < 50 else 1


if __name__ == "__main__":
    sys.exit(main())
