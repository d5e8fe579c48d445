/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that depend on each other or on the machine, and what other parts get of them. */
#ifndef LODGE_LODGED_CONFIG_CHECK_H
#define LODGE_LODGED_CONFIG_CHECK_H

#include "lodged/config.h"

struct engine_opts;
struct thread_config;

/* Replaces CONF_AUTO by values for this machine, checks settings against each other, and reads the
 * TLS files. */
int config_check(struct config *c, struct err *err);
/* The results borrow strings of c. */
void config_threads(const struct config *c, struct thread_config *ret);
void config_engine(const struct config *c, struct engine_opts *ret);

#endif
