/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up root: whose the service and its data are. */
#ifndef LODGE_LODGED_SERVICE_USER_H
#define LODGE_LODGED_SERVICE_USER_H

#include <sys/types.h>

#include "base/err.h"

struct own {
	uid_t uid;
	gid_t gid;
};

/* A user's name or number; NULL: "lodge" if there is such a user, else a number that is nobody's.
 * Root is refused. */
int own_find(const char *user, struct own *ret, struct err *err);
/* Makes the data directory this user's, apart from `keeper` below it, which is root's and holds
 * what guests may have written. A directory that root used before is rearranged. */
int own_data(const char *home, const struct own *o, struct err *err);
/* For good: no capability is left, and none comes back by a program that is run. */
int own_become(const struct own *o, const char *home, struct err *err);

#endif
