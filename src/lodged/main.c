/* SPDX-License-Identifier: Apache-2.0 */
/* lodged: for now it can tell whether sandboxes can be made here; it does not serve HTTP yet. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/exec.h"
#include "sandbox/home.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

enum { EXIT_NO = 1, EXIT_USAGE = 2, CHECK_MS = 10000 };

static const char usage[] =
	"usage: lodged --check [--home DIR]\n"
	"\n"
	"  --check      make one sandbox, run one command in it, say how it went\n"
	"  --home DIR   where templates and sandboxes are kept\n"
	"  --version, --help\n";

static int try_one(const char *home, double *ret_ms, struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();
	struct exec_spec x = { .text = "echo lodge", .timeout_ms = CHECK_MS };
	struct exec_output o;
	bool right;

	if (keeper_client_spawn(&how, &k, err) < 0 || sandbox_new(k, &spec, &sb, err) < 0 ||
	    exec_run(sb, &x, NULL, 0, &o, err) < 0)
		return -1;
	right = o.result.code == 0 && !strcmp(o.out, "lodge\n");
	exec_output_fini(&o);
	*ret_ms = (double)sandbox_ready_us(sb) / 1000;
	return right ? 0 : err_set(err, ERR_INTERNAL, "the first command did not work");
}

static int check(const char *given)
{
	char home[HOME_SIZE];
	struct err err;
	double ms;

	if (home_find(given, home, &err) < 0 || try_one(home, &ms, &err) < 0) {
		fprintf(stderr, "lodged: %s\n", err.msg);
		return EXIT_NO;
	}
	printf("sandboxes can be made here (%.1f ms, home %s)\n", ms, home);
	return 0;
}

int main(int argc, char **argv)
{
	const char *home = NULL;
	bool wants_check = false;

	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--version")) {
			puts("lodged " LODGE_VERSION);
			return 0;
		}
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!strcmp(argv[i], "--check")) {
			wants_check = true;
		} else if (!strcmp(argv[i], "--home") && i + 1 < argc) {
			home = argv[++i];
		} else {
			fprintf(stderr, "lodged: unknown option \"%.40s\" (try --help)\n", argv[i]);
			return EXIT_USAGE;
		}
	}
	if (wants_check)
		return check(home);
	fputs("lodged: this version does not serve HTTP yet; see lodge run, or lodged --check\n",
	      stderr);
	return EXIT_USAGE;
}
