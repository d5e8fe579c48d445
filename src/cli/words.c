/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { WORDS = 2 };

static const struct {
	const char *word;
	const char *means[WORDS];
} translations[] = {
	/* of older versions */
	{ "new", { "create" } },
	{ "show", { "inspect" } },
	{ "enter", { "shell" } },
	{ "hibernate", { "stop" } },
	{ "resume", { "start" } },
	{ "snapshots", { "snapshot", "ls" } },
	{ "templates", { "template" } },
	{ "users", { "user" } },
	{ "projects", { "project" } },
	{ "teams", { "team" } },
	{ "keys", { "key" } },
	/* of docker and e2b */
	{ "policies", { "policy" } },
	{ "list", { "ls" } },
	{ "delete", { "rm" } },
	{ "remove", { "rm" } },
	{ "connect", { "shell" } },
	{ "spawn", { "create" } },
	{ "images", { "template", "ls" } },
	{ "image", { "template" } },
	{ "rmi", { "template", "rm" } },
	{ "commit", { "snapshot", "create" } },
	{ "stats", { "top" } },
	{ "info", { "status" } },
};

static const struct {
	const char *word, *hint;
} hints[] = {
	{ "pull",
	  "lodge uses no registry; docker save IMAGE -o FILE, then: lodge template create NAME "
	  "FILE" },
	{ "load", "import what docker save wrote: lodge template create NAME FILE" },
	{ "build",
	  "prepare a session, then: lodge template create NAME --snapshot $(lodge snapshot "
	  "create SESSION)" },
	{ "push", "lodge uses no registry; save a session to a file: lodge export" },
	{ "save", "save a session to a file: lodge export" },
	{ "tag", "a template has one name: lodge template create NAME --snapshot SNAPSHOT" },
	{ "restart", "use lodge stop and lodge start; the files stay" },
	{ "wait", "lodge exec waits for its command, and lodge logs -f for one that runs" },
	{ "rename",
	  "a session keeps its key; copy it to another one: lodge fork --key KEY SESSION" },
	{ "update", "use lodge set" },
	{ "volume", "files of a session stay; on this machine: lodge run -v HOSTDIR:PATH" },
	{ "port", "sandboxes have no network" },
	{ "network", "sandboxes have no network" },
	{ "compose", "one session is one sandbox; create several: lodge create" },
	{ "logout", "remove the key from ~/.config/lodge/config" },
	{ "version", "use lodge --version, and lodge status for the service" },
	{ "ssh", "use lodge shell" },
	{ "system", "instead of system prune use lodge prune, instead of system df lodge status" },
	{ "history",
	  "lodge ps -a lists the commands of a session, lodge snapshot ls its snapshots" },
};

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* Sessions need no group of their own: `lodge sandbox ls` is `lodge ls`. */
static bool is_group_of_sessions(const char *word)
{
	static const char *const groups[] = { "session",   "sessions",	"sandbox",
					      "sandboxes", "container", NULL };

	return is_one_of(word, groups);
}

static const char *const all_options[] = { "-a", "--all", NULL };

/* `lodge ps` is about the commands of a session; without one it lists sessions, as docker does. */
static bool lists_sessions(int argc, char **argv)
{
	static const char *const options[] = { "-q", "--quiet", "--json", NULL };

	if (strcmp(argv[0], "ps") != 0)
		return false;
	for (int i = 1; i < argc; i++)
		if (!is_one_of(argv[i], all_options) && !is_one_of(argv[i], options))
			return false;
	return true;
}

/* The words of `means`, then those after argv[0]. They live as long as the process. */
static char **join(const char *const *means, int nmeans, int *argc, char **argv)
{
	static char **all;

	all = calloc((size_t)nmeans + (size_t)*argc, sizeof(*all));
	for (int i = 0; all && i < nmeans; i++)
		if (!(all[i] = strdup(means[i])))
			return NULL;
	if (!all)
		return NULL;
	memcpy(all + nmeans, argv + 1, sizeof(*all) * (size_t)(*argc - 1));
	*argc += nmeans - 1;
	return all;
}

/* Running ones only, unless -a is given; the option itself is dropped. */
static char **translate_ps(int *argc, char **argv)
{
	static const char *const means[] = { "ls", "--state", "active" };
	bool all = false;
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		if (is_one_of(argv[i], all_options))
			all = true;
		else
			argv[n++] = argv[i];
	}
	*argc = n;
	return join(means, all ? 1 : ARRAY_LEN(means), argc, argv);
}

char **words_translate(int *argc, char **argv)
{
	static const char *const ls[] = { "ls" };

	if (is_group_of_sessions(argv[0]) && *argc == 1)
		return join(ls, 1, argc, argv);
	if (is_group_of_sessions(argv[0]) && argv[1][0] != '-') {
		--*argc;
		return words_translate(argc, argv + 1);
	}
	if (lists_sessions(*argc, argv))
		return translate_ps(argc, argv);
	for (size_t i = 0; i < ARRAY_LEN(translations); i++)
		if (strcmp(argv[0], translations[i].word) == 0)
			return join(translations[i].means, translations[i].means[1] ? 2 : 1, argc,
				    argv);
	return argv;
}

const char *words_hint(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strcmp(hints[i].word, word) == 0)
			return hints[i].hint;
	return NULL;
}
