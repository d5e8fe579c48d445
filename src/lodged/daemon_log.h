/* SPDX-License-Identifier: Apache-2.0 */
/* The log on standard error: one line per event, as JSON or as text for people. Thread-safe. */
#ifndef LODGE_LODGED_DAEMON_LOG_H
#define LODGE_LODGED_DAEMON_LOG_H

#include "http/http_request.h"
#include "lodged/config.h"

/* LOG_AUTO: text if standard error is a terminal, otherwise JSON. Call it before threads start. */
void log_set_format(enum log_format format);
bool log_is_text(void);
/* Drops messages less severe than this. */
void log_set_level(enum conf_level level);
void log_line(enum conf_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *request, const struct err *err);
void log_request(const struct http_request *rq, unsigned status, uint64_t bytes, uint64_t us);

#endif
