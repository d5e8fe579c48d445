/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the threads surface: sessions of conversations, used by bash tools of
 * agents. Errors are {"detail": ...}: a text, or an object where the contract has one. Times are
 * ISO 8601. */
#ifndef LODGE_API_THREADS_THREADS_SESSIONS_H
#define LODGE_API_THREADS_THREADS_SESSIONS_H

#include "api/threads/threads_routes.h"
#include "api/v1/v1_files.h"

/* A required string of 1 to max bytes. */
int threads_text(const json_t *b, const char *name, size_t max, const char **ret, struct err *err);
/* {"detail": "..."} */
int threads_error(struct api_call *c, unsigned status, const char *detail, struct err *err);
/* The same with an object that has an "error"; call api_reply(). */
void threads_error_begin(struct json_out *j, const char *error);

#endif
