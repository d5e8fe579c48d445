/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template add. */
#ifndef LODGE_CLI_LOCAL_LOCAL_TEMPLATE_ADD_H
#define LODGE_CLI_LOCAL_LOCAL_TEMPLATE_ADD_H

#include "base/err.h"

struct keeper_client;

/* 0, or -status with err set. */
int local_template_add(int argc, char **argv, struct err *err);
/* Removes the template's files. ERR_NOT_FOUND: there are none. */
int local_template_delete(struct keeper_client *k, const char *name, struct err *err);

#endif
