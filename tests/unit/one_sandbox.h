/* SPDX-License-Identifier: Apache-2.0 */
/* A real keeper and one of its sandboxes, for all tests of a program. Needs $LODGE_BUILD (meson
 * sets it) and a machine where sandboxes work. */
#ifndef LODGE_TESTS_ONE_SANDBOX_H
#define LODGE_TESTS_ONE_SANDBOX_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "tap.h"
#include "tmp_name.h"

static char home[TMP_NAME_SIZE];
static struct keeper_client *keeper;
static struct sandbox *box; /* the connection of the current engine */
static struct err err;
static const char *why_not;

#define ENGINE()                                                                                   \
	if (why_not)                                                                               \
	SKIP(why_not)

static inline void open_engine(void)
{
	char program[4096];
	const char *build = getenv("LODGE_BUILD");
	struct keeper_client_opts how = { .program = program, .home = home, .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();

	setvbuf(stdout, NULL, _IOLBF, 0); /* a leak report must not lose earlier output */
	snprintf(program, sizeof(program), "%s/lodge-keeper", build ? build : "build");
	if (access(program, X_OK) < 0) {
		why_not = "needs lodge-keeper in $LODGE_BUILD";
	} else if (!mkdtemp(tmp_name(home, "lodge-engine")) || chmod(home, 0755) < 0 ||
		   keeper_client_spawn(&how, &keeper, &err) < 0 ||
		   sandbox_new(keeper, &spec, &box, &err) < 0) {
		printf("# %s\n", err.msg);
		why_not = "needs a machine where sandboxes work";
	}
}

static inline void close_engine(void)
{
	sandbox_free(box);
	keeper_client_free(keeper);
	if (!why_not) /* only the keeper's cache of the host template remains */
		file_remove_tree_at(AT_FDCWD, home);
}

#endif
