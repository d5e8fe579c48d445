/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the exec routes. */
#ifndef LODGE_API_V1_V1_EXEC_H
#define LODGE_API_V1_V1_EXEC_H

#include "api/core/api_call.h"
#include "api/v1/v1_routes.h"
#include "machine/exec.h"
#include "sandbox/guest_exec_sync.h"

enum { V1_SIDE_MAX = 65535 }; /* rows and columns of a terminal */

/* Parsed body of an exec request. Its memory belongs to the call. */
struct exec_request {
	struct exec_opts want;
	const char *input; /* NULL: none */
	bool keep_open; /* keep the input open for more */
	bool base64; /* encode output as base64, not as text */
};

/* Starts the command; sets a response header if the session was resumed. */
int v1_exec_start(struct api_call *c, const struct session_ref *ref, const struct exec_request *w,
		  struct exec_handle **ret, struct err *err);
/* Writes its input and waits. *ret is the end of its output, as much as a response can have; call
 * guest_exec_output_fini(). 1: the client disconnected; the command keeps running. */
int v1_exec_collect(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
		    struct guest_exec_output *ret, struct err *err);
void v1_exec_out(struct json_out *j,
		 const struct guest_exec_output *o); /* a JSON writer that is large enough */
/* Writes output as a member of an object. */
void v1_put_output(struct json_out *j, const char *key, const void *bytes, size_t len, bool base64);
/* Writes the result of a command, without its output, into the current object. */
int v1_put_result(struct json_out *j, struct exec_handle *x, const struct guest_exec_output *o,
		  struct err *err);
/* For exec_set_cancel(): unread input must not delay a shutdown. */
bool v1_is_ending(void *rq);
/* Returns 409 instead of resuming. */
bool v1_no_resume(struct api_call *c);
/* Finds a command of the session in the path. */
int v1_open_exec(struct api_call *c, const char *id, struct exec_handle **ret, struct err *err);

#endif
