/* SPDX-License-Identifier: Apache-2.0 */
/* The files of schema/, in order; tools/embed generates them at build time. */
#ifndef LODGE_STORE_SCHEMA_H
#define LODGE_STORE_SCHEMA_H

/* SQL texts, terminated by NULL. The first takes an empty database to version 1. */
extern const char *const schema_files[];

#endif
