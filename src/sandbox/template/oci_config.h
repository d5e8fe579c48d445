/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in the configuration of an image: User, WorkingDir and Env. */
#ifndef LODGE_SANDBOX_TEMPLATE_OCI_CONFIG_H
#define LODGE_SANDBOX_TEMPLATE_OCI_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "sandbox/template/template.h"

/* Copies them to the template, except those that it has already. *ret_root: the image wants to run
 * as root. `config` is the member of that name, or NULL. */
int oci_config_apply(const json_t *config, struct template *t, bool *ret_root, struct err *err);

#endif
