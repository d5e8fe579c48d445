/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects invalid records with ERR_INVALID before they reach the database. */
#ifndef LODGE_STORE_RECORD_CHECK_H
#define LODGE_STORE_RECORD_CHECK_H

#include "base/err.h"
#include "store/store.h"

int check_session(const struct store_session *s, struct err *err);
int check_session_filter(const struct store_session_filter *f, struct err *err);
int check_snapshot_filter(const struct store_snapshot_filter *f, struct err *err);
int check_event(const struct store_event *e, struct err *err);
int check_binding(const struct store_binding *b, struct err *err);
int check_layer(const struct store_layer *l, struct err *err);
int check_snapshot(const struct store_snapshot *s, struct err *err);
int check_exec(const struct store_exec *e, struct err *err);
int check_once(const struct store_once *o, struct err *err);
int check_project(const struct store_project *p, struct err *err);
int check_fragment(const struct store_fragment *f, struct err *err);
int check_user(const struct store_user *u, struct err *err);
int check_member(const struct store_member *m, struct err *err);
int check_key(const struct store_key *k, struct err *err);
int check_policy(const struct store_policy *p, struct err *err);
int check_environment(const struct store_environment *v, struct err *err);
int check_files(const struct store_file *files, size_t n, struct err *err);
int check_page(struct store_page page, struct err *err);
/* `text` must not be empty; `what` names it in the error. */
int check_text(const char *what, const char *text, struct err *err);
/* A filter may be NULL for any, but not empty: a forgotten tenant must not match all tenants. */
int check_filter(const char *what, const char *text, struct err *err);

#endif
