/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_SERVER_TLS_H
#define LODGE_LODGED_SERVER_TLS_H

#include "base/err.h"

/* Whether these PEM files hold a certificate and the key that belongs to it. The library that uses
 * them only says that something is wrong. */
int tls_check(const char *cert, const char *key, struct err *err);

#endif
