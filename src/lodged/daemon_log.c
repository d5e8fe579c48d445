/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/daemon_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

enum { LINE_MAX_BYTES = 16 << 10 };

static atomic_uint least = LEVEL_INFO;

void log_level(enum conf_level level)
{
	least = level;
}

static void begin(struct json_out *j, enum conf_level level, const char *msg)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };

	json_out_init(j, LINE_MAX_BYTES);
	json_out_object(j, NULL);
	json_out_i64(j, "time", clock_wall_ms());
	json_out_str(j, "level", names[level]);
	json_out_str(j, "msg", msg);
}

/* One write: lines of several threads do not mix. */
static void end(struct json_out *j)
{
	auto_free char *text = NULL;
	ssize_t n;
	size_t len;

	json_out_end(j);
	text = json_out_take(j, &len);
	if (!text)
		return;
	text[len] = '\n'; /* where the NUL was */
	n = write(STDERR_FILENO, text, len + 1);
	(void)n;
}

void log_line(enum conf_level level, const char *fmt, ...)
{
	char text[1024];
	struct json_out j;
	va_list ap;

	if (level > least)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	begin(&j, level, text);
	end(&j);
}

void log_error(const char *request, const struct err *err)
{
	struct json_out j;

	begin(&j, LEVEL_ERROR, "trouble");
	json_out_str(&j, "request", request);
	json_out_str(&j, "error", err->msg);
	json_out_i64(&j, "errno", err->sys);
	end(&j);
}

void log_request(const struct http_request *rq, unsigned status, uint64_t bytes, uint64_t us)
{
	enum conf_level level = status >= 500 && status != 503 ? LEVEL_ERROR : LEVEL_INFO;
	struct json_out j;

	if (level > least)
		return;
	begin(&j, level, "request");
	json_out_str(&j, "request", http_id(rq));
	json_out_str(&j, "peer", http_peer(rq));
	json_out_str(&j, "method", http_method(rq));
	json_out_str(&j, "path", http_path(rq)); /* what follows may be secret */
	json_out_u64(&j, "status", status);
	json_out_u64(&j, "bytes", bytes);
	json_out_u64(&j, "us", us);
	end(&j);
}
