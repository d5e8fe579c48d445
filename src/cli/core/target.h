/* SPDX-License-Identifier: Apache-2.0 */
/* Which lodged commands talk to, and how they refer to sessions. */
#ifndef LODGE_CLI_CORE_TARGET_H
#define LODGE_CLI_CORE_TARGET_H

#include <errno.h>
#include <stddef.h>

#include "cli/core/options.h"
#include "client/client.h"

/* --url and --key-file, which come before everything else. A process has one command line, so they
 * are stored here and not in the option struct. */
extern const struct cli_option target_options[];
extern cli_option_fn target_set;

/* Connects to --url, else LODGE_URL, else the url of the file target_config() names, else the
 * socket of this machine. */
int target_client(struct client **ret, struct err *err);

/* Whether SESSION is the id of a session (ses_...) or of a sandbox (sbx_...). */
bool target_is_id(const char *arg);
/* SESSION of a command line as a segment of a path: ses_... and sbx_... are ids, anything else a
 * key; key:... is always a key. Fails with sys TARGET_NO_REF, which is wrong usage, if it can be
 * neither. */
enum { TARGET_REF = 1024, TARGET_NO_REF = EDESTADDRREQ };
int target_ref(const char *arg, char ret[TARGET_REF], struct err *err);

/* ---- the parts, for `lodge login` ------------------------------------------------------------ */

struct target {
	char *url, *key; /* key NULL: none */
};
int target_find(struct target *ret, struct err *err);
void target_fini(struct target *w);
/* The first line of a file, trimmed. */
int target_read_key(int fd, const char *path, char **ret, struct err *err);

/* ${XDG_CONFIG_HOME:-~/.config}/lodge/config */
enum { TARGET_PATH = 4096 };
int target_config(char ret[TARGET_PATH], struct err *err);

#endif
