/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/option_hints.h"

#include <string.h>

#include "base/array.h"

#define NO_MOUNTS "sessions mount no directories of the host; copy files: lodge cp"
#define LABELS "use --user and --project"
#define BY_JSON "use --json, and jq for a part of it"
#define FILTERS "use --state, --user or --project"
#define ALL_SESSIONS "name the sessions: lodge rm --yes $(lodge ls -q)"
#define NO_GRACE                                                                                   \
	"lodge stop waits for no process; send a signal before: lodge kill -s TERM SESSION EXEC"

/* The first row that fits counts; without a command it is one of all. */
static const struct {
	const char *command, *option, *hint;
} hints[] = {
	{ "run", "--mount", "use -v HOSTDIR:PATH" },
	{ NULL, "--mount", NO_MOUNTS },
	{ NULL, "--volume", NO_MOUNTS },
	{ NULL, "-v", NO_MOUNTS },
	{ "create", "--env", "variables belong to commands: lodge exec -e NAME=VALUE" },
	{ "create", "-e", "variables belong to commands: lodge exec -e NAME=VALUE" },
	{ "create", "--env-file", "variables belong to commands: lodge exec -e NAME=VALUE" },
	{ "create", "--name", "the name of a session is its KEY: lodge create NAME" },
	{ NULL, "--env-file", "name each variable: -e NAME=VALUE" },
	{ NULL, "--entrypoint", "write the program as the first word of COMMAND" },
	{ "run", "--privileged", "no sandbox has privileges on the host; for root inside: --root" },
	{ NULL, "--privileged",
	  "no sandbox has privileges on the host; for root inside, use a template with --root" },
	{ NULL, "--read-only",
	  "a sandbox writes only to files of its own; those of the host and of templates stay" },
	{ NULL, "--label", LABELS },
	{ NULL, "-l", LABELS },
	{ NULL, "--format", BY_JSON },
	{ "inspect", "-f", BY_JSON },
	{ NULL, "--filter", FILTERS },
	{ "ls", "-f", FILTERS },
	{ "ls", "-a", "all sessions are listed; for some of them, " FILTERS },
	{ "ls", "--all", "all sessions are listed; for some of them, " FILTERS },
	{ "export", "-o", "the archive is standard output: add > FILE" },
	{ "export", "--output", "the archive is standard output: add > FILE" },
	{ "import", "-i", "the archive is standard input: add < FILE" },
	{ "import", "--input", "the archive is standard input: add < FILE" },
	{ "rm", "--all", ALL_SESSIONS },
	{ "rm", "-a", ALL_SESSIONS },
	{ "stop", "--time", NO_GRACE },
	{ "stop", "--timeout", NO_GRACE },
	{ "stop", "-t", NO_GRACE },
};

const char *option_hint(const char *command, const char *option, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if ((!hints[i].command || strcmp(hints[i].command, command) == 0) &&
		    strlen(hints[i].option) == len && strncmp(hints[i].option, option, len) == 0)
			return hints[i].hint;
	return NULL;
}
