/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as HTTP statuses, codes and bodies. */
#ifndef LODGE_API_CORE_API_ERROR_H
#define LODGE_API_CORE_API_ERROR_H

#include "api/core/api_call.h"

/* err_set() with an errno, for a row of the table in api_error.c. */
int api_fail(struct err *err, enum err_code code, int sys, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));
unsigned api_status(const struct err *err);
const char *api_error_code(const struct err *err); /* "NOT_FOUND" */
bool api_error_is_retryable(const struct err *err);
/* The message for clients; hides the details of a 500. */
const char *api_error_text(const struct err *err);
/* Replaces names of files below a directory of the host. */
void api_error_hide_paths(struct err *err, const char *dir);
/* Writes the body of an error as /v1 has it, and returns its status. */
unsigned api_put_error(struct api_call *c, const struct err *err, struct json_out *j);
/* Replies with an error in the form of the surface, and returns its status. */
unsigned api_error(struct api_call *c, const struct err *err);
/* Begins a body as /v1 has it, with a code that no struct err has. Ends with api_reply(). */
void api_error_begin(struct json_out *j, const char *code, const char *message);
void api_log_error(struct api_call *c, const struct err *err);

#endif
