/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects invalid records with ERR_INVALID before they reach the database. */
#ifndef LODGE_STORE_RECORD_CHECK_H
#define LODGE_STORE_RECORD_CHECK_H

#include "store/columns.h"
#include "store/store.h"

/* A text with a label is not empty, an owned text is not too long, JSON is an object. */
int check_record(const struct columns *s, const void *record, struct err *err);
int check_session(const struct store_session *s, struct err *err);
int check_session_filter(const struct store_session_filter *f, struct err *err);
int check_row_query(const struct store_row_query *q, struct err *err);
int check_snapshot_filter(const struct store_snapshot_filter *f, struct err *err);
int check_files(const struct store_file *files, size_t n, struct err *err);
int check_page(struct store_page page, struct err *err);
/* `text` must not be empty; `what` names it in the error. */
int check_text(const char *what, const char *text, struct err *err);
/* A filter may be NULL for any, but not empty: a forgotten tenant must not match all tenants. */
int check_filter(const char *what, const char *text, struct err *err);

#endif
