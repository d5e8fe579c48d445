/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up root: whose the service and its data are. */
#ifndef LODGE_LODGED_SERVICE_USER_H
#define LODGE_LODGED_SERVICE_USER_H

#include <sys/types.h>

#include "base/err.h"

struct service_user {
	uid_t uid;
	gid_t gid;
};

/* A user's name or number; NULL: "lodge" if there is such a user, else a number that is nobody's.
 * Root is refused. */
int service_user_find(const char *user, struct service_user *ret, struct err *err);
/* Makes the data directory this user's, apart from `keeper` below it, which is root's and holds
 * what guests may have written. A directory that root used before is rearranged. */
int service_user_data(const char *home, const struct service_user *o, struct err *err);
/* For good: no capability is left, and none comes back by a program that is run. */
int service_user_become(const struct service_user *o, const char *home, struct err *err);

#endif
