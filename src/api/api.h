/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API, for the program that serves it. */
#ifndef LODGE_API_API_H
#define LODGE_API_API_H

#include "api/core/api_call.h"

int api_new(const struct api_opts *opts, struct api **ret, struct err *err);
void api_free(struct api *a);
DEFINE_AUTO(struct api *, api_free);
/* Callbacks for struct http_opts. */
void api_handle(void *arg, struct http_request *rq);
int api_admit(void *arg, struct http_request *rq);
/* Ends endless streams. */
void api_drain(struct api *a);
/* Replaces the lists of struct api_opts. */
int api_reload(struct api *a, const char *const *origins, const char *const *hosts,
	       struct err *err);

#endif
