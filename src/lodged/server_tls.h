/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_SERVER_TLS_H
#define LODGE_LODGED_SERVER_TLS_H

#include "base/err.h"

/* Checks that these PEM files contain a certificate and its key, and names the setting that is
 * wrong. */
int tls_check(const char *cert, const char *key, struct err *err);

#endif
