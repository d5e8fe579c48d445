/* SPDX-License-Identifier: Apache-2.0 */
/* The options that `lodge run`, `lodge template add` and `lodge templates` share: what a sandbox
 * may use, who runs in it and where. Their context begins with a struct template, which collects
 * them. */
#ifndef LODGE_CLI_CORE_LIMIT_OPTIONS_H
#define LODGE_CLI_CORE_LIMIT_OPTIONS_H

#include "cli/core/options.h"
#include "sandbox/template/template.h"

cli_option_fn limit_opt_memory, limit_opt_cpus, limit_opt_pids, limit_opt_disk, limit_opt_output,
	limit_opt_open_files, limit_opt_file_size, limit_opt_inodes;
cli_option_fn limit_opt_env, limit_opt_workdir, limit_opt_user, limit_opt_root, limit_opt_require;

/* What no template can be made with. */
int limit_opt_check(const struct template *t, struct err *err);

/* clang-format off */
#define LIMIT_OPT_MAIN(memory, cpus, pids, disk)                                                   \
	{ "memory", 0, "SIZE", memory, "most memory, such as 256M (default: 512M); no swap" },     \
	{ "cpus", 0, "N", cpus, "processor time; 0.5: half a core (default: its share)" },         \
	{ "pids", 0, "N", pids, "most processes and threads (default: 256)" },                     \
	{ "disk", 0, "SIZE", disk, "most data in files, such as 500M (default: 1G)" }
#define LIMIT_OPT_SPEC                                                                             \
	LIMIT_OPT_MAIN(limit_opt_memory, limit_opt_cpus, limit_opt_pids, limit_opt_disk),          \
	{ "inodes", 0, "N", limit_opt_inodes, "most files and directories (default: 200000)" },    \
	{ "file-size", 0, "SIZE", limit_opt_file_size, "largest single file (default: 1G)" },      \
	{ "open-files", 0, "N", limit_opt_open_files,                                              \
	  "most open files of one process (default: 1024)" },                                      \
	{ "output", 0, "SIZE", limit_opt_output,                                                   \
	  "kept of each output stream with --json (default: 16M)" },                               \
	{ "env", 0, "NAME=VALUE", limit_opt_env, "set a variable; may be repeated" },              \
	{ "workdir", 'w', "PATH", limit_opt_workdir, "working directory inside" },                 \
	{ "user", 0, "USER", limit_opt_user, "run as this user inside: name or uid[:gid]" },       \
	{ "root", 0, NULL, limit_opt_root,                                                         \
	  "a root inside: apt and sudo work\n"                                                     \
	  "                            in a template with a root file system of its own" }
#define LIMIT_OPT_TABLE                                                                            \
	LIMIT_OPT_SPEC,                                                                            \
	{ "require-limits", 0, NULL, limit_opt_require, "fail if a limit cannot be enforced" }
/* clang-format on */

#endif
