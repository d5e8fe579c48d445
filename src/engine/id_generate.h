/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_ID_GENERATE_H
#define LODGE_ENGINE_ID_GENERATE_H

#include "base/err.h"
#include "store/record.h"

/* A random id that begins with `prefix` ("ses_"), in lower case. */
int id_generate(const char *prefix, char ret[STORE_ID], struct err *err);

#endif
