/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon from its start to its end. */
#ifndef LODGE_LODGED_DAEMON_H
#define LODGE_LODGED_DAEMON_H

#include "lodged/config.h"

/* Reads all settings anew, for SIGHUP. */
typedef int serve_load_fn(void *arg, struct config *ret, struct err *err);

/* Until SIGTERM or SIGINT. The sandboxes live on. */
int serve(const struct config *c, serve_load_fn *load, void *arg, struct err *err);

#endif
