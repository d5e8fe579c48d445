/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_EXCHANGE_H
#define LODGE_HTTP_EXCHANGE_H

#include "http/internal.h"

void http_wake(struct http_request *rq); /* locked */
void http_ended(struct http_request *rq); /* call it when the handler has returned */
void http_abort(struct http_request *rq); /* locked: gives up on the client */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *mhd, const char *url,
				const char *method, const char *version, const char *data,
				size_t *size, void **rq);
/* Result of a read callback that ends the connection early. */
ssize_t http_broken(struct http_request *rq);
void http_on_completed(void *server, struct MHD_Connection *mhd, void **rq,
		       enum MHD_RequestTerminationCode why);
ssize_t http_on_read(void *rq, uint64_t pos, char *buf, size_t max);

#endif
