/* SPDX-License-Identifier: Apache-2.0 */
/* The files of schema/, in order; made by tools/embed when lodge is built. */
#ifndef LODGE_STORE_SCHEMA_H
#define LODGE_STORE_SCHEMA_H

/* SQL texts, the first takes an empty database to version 1; NULL ends them. */
extern const char *const schema_files[];

#endif
