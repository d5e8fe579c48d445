/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the service. */
#ifndef LODGE_LODGED_DAEMON_H
#define LODGE_LODGED_DAEMON_H

#include "lodged/config.h"

/* Reads all settings again, for SIGHUP. */
typedef int serve_load_fn(void *arg, struct config *ret, struct err *err);

/* Serves until SIGTERM or SIGINT. Sandboxes keep running. */
int serve(const struct config *c, serve_load_fn *load, void *arg, struct err *err);

#endif
