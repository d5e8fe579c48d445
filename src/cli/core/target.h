/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon is that commands ask, and how they spell what they ask about. */
#ifndef LODGE_CLI_CORE_TARGET_H
#define LODGE_CLI_CORE_TARGET_H

#include <errno.h>
#include <stddef.h>

#include "cli/core/options.h"
#include "client/client.h"

/* Of every command that asks the daemon: what is said there comes before everything else. There is
 * one command line, so their context is not looked at. */
cli_option_fn where_opt_url, where_opt_key_file;

/* clang-format off */
#define WHERE_OPT_TABLE                                                                            \
	{ "url", 0, "URL", where_opt_url, "which lodged: unix:PATH, http:// or https://HOST:PORT" }, \
	{ "key-file", 0, "FILE", where_opt_key_file, "the file with the key for it" }
/* clang-format on */

/* The daemon of --url, else of LODGE_URL, else of the file target_config() names, else that of this
 * machine, by its socket. None: a sentence that says where it looked. */
int target_client(struct client **ret, struct err *err);

/* SESSION of a command line as lodged has it in its paths: ses_... is an id, anything else a key;
 * key:... is always one. What can be neither fails with sys WHERE_NO_REF: a wrong call. */
enum { WHERE_REF = 1024, WHERE_NO_REF = EDESTADDRREQ };
int target_ref(const char *arg, char ret[WHERE_REF], struct err *err);

/* ---- the parts, for `lodge login` ------------------------------------------------------------ */

struct target {
	char *url, *key; /* key NULL: none */
};
int target_find(struct target *ret, struct err *err);
void target_fini(struct target *w);

/* ${XDG_CONFIG_HOME:-~/.config}/lodge/config */
enum { WHERE_PATH = 4096 };
int target_config(char ret[WHERE_PATH], struct err *err);
/* What that file says; one that is not there says nothing. */
int target_read(const char *path, struct target *ret, struct err *err);
/* The first line of a file, without blanks around it. */
int target_key_of(const char *path, char **ret, struct err *err);
int target_key_in(int fd, const char *path, char **ret, struct err *err);

#endif
