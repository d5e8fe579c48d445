/* SPDX-License-Identifier: Apache-2.0 */
/* One line of JSON on standard error for each thing worth telling. From any thread. */
#ifndef LODGE_LODGED_DAEMON_LOG_H
#define LODGE_LODGED_DAEMON_LOG_H

#include "http/http_request.h"
#include "lodged/config.h"

void log_level(enum conf_level level); /* this and what is worse */
void log_line(enum conf_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *request, const struct err *err);
void log_request(const struct http_request *rq, unsigned status, uint64_t bytes, uint64_t us);

#endif
