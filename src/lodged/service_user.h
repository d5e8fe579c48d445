/* SPDX-License-Identifier: Apache-2.0 */
/* Drops root: the user of the service and the owner of its data. */
#ifndef LODGE_LODGED_SERVICE_USER_H
#define LODGE_LODGED_SERVICE_USER_H

#include <sys/types.h>

#include "base/err.h"

struct service_user {
	uid_t uid;
	gid_t gid;
};

/* Looks up a user name or number. NULL: "lodge" if it exists, otherwise an unused number. Rejects
 * root. */
int service_user_find(const char *user, struct service_user *ret, struct err *err);
/* Gives the data directory to this user, except `keeper` in it, which belongs to root and contains
 * files of guests. Rearranges a directory that root used before. */
int service_user_data(const char *home, const struct service_user *o, struct err *err);
/* Irreversible: all capabilities are dropped, and executing a program grants none. */
int service_user_become(const struct service_user *o, const char *home, struct err *err);

#endif
