/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about commands have from each other. */
#ifndef LODGE_API_V1_V1_EXEC_H
#define LODGE_API_V1_V1_EXEC_H

#include "api/core/api_call.h"
#include "api/v1/v1_routes.h"
#include "machine/exec.h"
#include "sandbox/guest_exec_sync.h"

/* A command as the body of a request describes it. Everything in it goes with the call. */
struct exec_request {
	struct exec_opts want;
	const char *input; /* NULL: none */
	bool keep_open; /* more input may come after it */
	bool base64; /* output as base64, else as text */
};

/* Starts it; the answer's head tells if the session had to be resumed. */
int v1_exec_start(struct api_call *c, const struct session_ref *ref, const struct exec_request *w,
		  struct exec_handle **ret, struct err *err);
/* Gives it its input and waits; *ret is the newest of its output, as much as an answer has room
 * for, and for guest_exec_output_fini(). *ret_gone: nobody waits any more, and it goes on. */
int v1_exec_collect(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
		    struct guest_exec_output *ret, bool *ret_gone, struct err *err);
void v1_exec_out(struct json_out *j,
		 const struct guest_exec_output *o); /* a writer with room for it */
/* Bytes of a stream as a member of an object. */
void v1_put_output(struct json_out *j, const char *key, const void *bytes, size_t len, bool base64);
/* How much of the beginning does not end within a character: what is left out comes again. */
size_t v1_whole(const char *bytes, size_t len);
/* What is told of a command that ended, but for its output: members of the innermost object. */
int v1_put_result(struct json_out *j, struct exec_handle *x, const struct guest_exec_output *o,
		  struct err *err);
int v1_take_encoding(const char *name, bool *ret, struct err *err);
/* For exec_set_cancel(): input that nobody takes must not keep a service that ends. */
bool v1_is_ending(void *rq);
/* 409 rather than resuming. */
bool v1_no_resume(struct api_call *c);
/* The command of this id, if it belongs to the session of the path. */
int v1_open_exec(struct api_call *c, const char *id, struct exec_handle **ret, struct err *err);

enum v1_stream { V1_NO_STREAM, V1_SSE, V1_NDJSON };
enum v1_stream v1_stream_is_requested(const struct api_call *c);
/* The offsets that the caller has already: read before anything is started. */
int v1_stream_offset(struct api_call *c, int64_t has[2], struct err *err);
/* Sends what the command does until it ends or the caller is gone; takes over x. */
int v1_exec_stream(struct api_call *c, const struct exec_request *w, enum v1_stream how,
		   const int64_t has[2], struct exec_handle *x, struct err *err);

#endif
