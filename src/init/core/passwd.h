/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups of the sandbox's own /etc/passwd and /etc/group. Guests can write both: they are
 * read within bounds and trusted only as far as the binding allows. */
#ifndef LODGE_INIT_CORE_PASSWD_H
#define LODGE_INIT_CORE_PASSWD_H

#include "init/core/init_state.h"

struct passwd_user {
	struct cred cred;
	char name[64];
	char home[256];
	char shell[128];
};

/* "" is the default user, else "name" or "uid[:gid]"; a number needs no entry. */
int passwd_resolve(const char *spec, struct passwd_user *ret, struct err *err);

/* File operations between the two calls have the rights of the user. 0 or -errno; call
 * passwd_revert() in both cases. */
int passwd_impersonate(const struct cred *c);
void passwd_revert(void);

/* Switches a child process to the user for good. 0 or -errno. Raw system calls only. */
int passwd_switch_user(const struct cred *c);

#endif
