/* SPDX-License-Identifier: Apache-2.0 */
/* Users as the sandbox's own /etc/passwd and /etc/group name them. Both are guest-written: read
 * within bounds, believed only as far as the binding allows. */
#ifndef LODGE_INIT_CORE_PASSWD_H
#define LODGE_INIT_CORE_PASSWD_H

#include "init/core/init_state.h"

struct user {
	struct cred cred;
	char name[64];
	char home[256];
	char shell[128];
};

/* "" is the default user, else "name" or "uid[:gid]"; a number needs no entry. */
int passwd_resolve(const char *spec, struct user *ret, struct err *err);

/* File operations between the two calls are the user's. 0 or -errno; always pair them. */
int passwd_enter(const struct cred *c);
void passwd_leave(void);

/* In a child that goes on as the user for good. 0 or -errno. Raw system calls only. */
int passwd_become(const struct cred *c);

#endif
