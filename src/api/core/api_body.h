/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies and queries, and JSON responses. */
#ifndef LODGE_API_CORE_API_BODY_H
#define LODGE_API_CORE_API_BODY_H

#include "api/core/api_call.h"

/* Parses the body as a JSON object with only these fields ("name snapshot"; NULL: any field).
 * ERR_INVALID names an unknown field. An empty body is an empty object. *ret is freed with the
 * call. */
int api_body(struct api_call *c, const char *fields, json_t **ret, struct err *err);
bool api_has_name(const char *names, const char *name); /* names as in `fields` */
/* Whether untrusted JSON can be parsed on a thread's small stack. Check it before parsing. */
bool body_is_shallow(const char *text, size_t len);
/* Waits for a slot of the gate for large requests, which the call keeps until its end.
 * ERR_UNAVAILABLE: timed out. */
int body_gate_enter(struct api_call *c, struct err *err);

/* Typed members. An absent one leaves *ret unchanged; ERR_INVALID names one of the wrong type. */
json_t *api_member(const json_t *o, const char *name); /* NULL: absent, or null */
int api_str(const json_t *o, const char *name, const char **ret, struct err *err);
int api_int(const json_t *o, const char *name, int64_t min, int64_t max, int64_t *ret,
	    struct err *err);
int api_bool(const json_t *o, const char *name, bool *ret, struct err *err);
/* A string of 1 to size - 1 bytes, copied. */
int api_copy(const json_t *o, const char *name, char *ret, size_t size, struct err *err);
/* One of two words; *ret: it is the second. text NULL: *ret stays unchanged. */
int api_word(const char *name, const char *text, const char *no, const char *yes, bool *ret,
	     struct err *err);
int api_choice(const json_t *o, const char *name, const char *no, const char *yes, bool *ret,
	       struct err *err);
/* The same for query parameters. */
int api_query_int(struct api_call *c, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err);
/* Refuses every query parameter that is not one of `names`, which are separated by blanks. */
int api_query_check(struct api_call *c, const char *names, struct err *err);
int api_query_unknown(const char *name, struct err *err); /* the error for one; returns -1 */
bool api_query_flag(struct api_call *c, const char *name); /* given, and not "0" or "false" */
/* The tenant that the request names, or that of the key. Only admin keys may name another one. */
int api_query_tenant(struct api_call *c, const char **ret, struct err *err);
/* Pages: api_page() parses "limit" and "after" of the query; api_list() begins the object with the
 * list; api_list_end() ends the list and adds the cursor of the next page, or null. */
int api_page(struct api_call *c, struct store_page *ret, struct err *err);
void api_list(struct json_out *j, const char *name);
void api_list_end(struct json_out *j, int64_t next);

void api_out(struct json_out *j); /* a JSON writer with the default limit */
void api_object(struct json_out *j); /* the same, in an object */
/* Ends all open objects and lists and the writer. Returns the text with a newline, because
 * terminals want whole lines, and without a NUL. NULL: out of memory. */
char *api_line(struct json_out *j, size_t *ret_len);
/* Sends what api_line() returns. */
int api_reply(struct api_call *c, unsigned status, struct json_out *j, struct err *err);

#endif
