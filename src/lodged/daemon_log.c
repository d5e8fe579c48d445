/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/daemon_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/one_line.h"

enum { JSON_MAX = 16 << 10, TEXT_MAX = 1024, SECRET_MIN = 8 };

static atomic_uint max_level = LEVEL_INFO;
static bool is_text;

void log_set_format(enum log_format format)
{
	is_text = format == LOG_TEXT || (format == LOG_AUTO && isatty(STDERR_FILENO));
}

bool log_is_text(void)
{
	return is_text;
}

void log_set_level(enum conf_level level)
{
	max_level = level;
}

/* A single write keeps the lines of several threads apart. */
static void write_line(const char *line, size_t len)
{
	(void)!write(STDERR_FILENO, line, len);
}

/* Requests and guests control parts of the message, so it must not reach the terminal as it is. */
static void write_text(enum conf_level level, const char *msg)
{
	char line[TEXT_MAX + 32], plain[TEXT_MAX], now[16];
	time_t seconds = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;
	int n;

	one_line_print(msg, plain, sizeof(plain));
	strftime(now, sizeof(now), "%H:%M:%S", localtime_r(&seconds, &tm));
	n = snprintf(line, sizeof(line), "%s %-5s %s\n", now, config_levels[level], plain);
	write_line(line, (size_t)n);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void begin_json(struct json_out *j, enum conf_level level, const char *msg)
{
	json_out_init(j, JSON_MAX);
	json_out_object(j, NULL);
	json_out_i64(j, "time", clock_wall_ms());
	json_out_str(j, "level", config_levels[level]);
	json_out_str(j, "msg", msg);
}

static void end_json(struct json_out *j)
{
	auto_free char *text = NULL;
	size_t len;

	json_out_end(j);
	text = json_out_take(j, &len);
	if (!text)
		return;
	text[len] = '\n'; /* replaces the NUL */
	write_line(text, len + 1);
}

/* ---- events ---------------------------------------------------------------------------------- */

void log_line(enum conf_level level, const char *fmt, ...)
{
	char text[TEXT_MAX];
	struct json_out j;
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (is_text) {
		write_text(level, text);
		return;
	}
	begin_json(&j, level, text);
	end_json(&j);
}

void log_error(const char *request, const struct err *err)
{
	char text[TEXT_MAX];
	struct json_out j;

	if (is_text) {
		snprintf(text, sizeof(text), "request %s failed: %s", request, err->msg);
		write_text(LEVEL_ERROR, text);
		return;
	}
	begin_json(&j, LEVEL_ERROR, "request failed");
	json_out_str(&j, "request", request);
	json_out_str(&j, "error", err->msg);
	json_out_i64(&j, "errno", err->sys);
	end_json(&j);
}

/* The path with "lk_[redacted]" for each secret of an API key, which a client may have taken for
 * its id. NULL: no memory. */
static char *redact_secrets(const char *path)
{
	static const char start[] = "lk_", instead[] = "[redacted]";
	char *clean = malloc(2 * strlen(path) + 1), *to = clean; /* `instead` replaces 8 or more */

	while (to && *path) {
		size_t n = strncmp(path, start, 3) == 0 ? strspn(path + 3, "0123456789abcdefABCDEF")
							: 0;

		if (n < SECRET_MIN) {
			*to++ = *path++;
			continue;
		}
		to = stpcpy(stpcpy(to, start), instead);
		path += 3 + n;
	}
	if (to)
		*to = '\0';
	return clean;
}

/* The query is left out: it may contain secrets. */
void log_request(const struct http_request *rq, unsigned status, uint64_t bytes, uint64_t us)
{
	enum conf_level level = status >= 500 && status != 503 ? LEVEL_ERROR : LEVEL_INFO;
	auto_free char *path = NULL;
	char text[TEXT_MAX];
	struct json_out j;

	if (level > max_level)
		return;
	path = redact_secrets(http_path(rq));
	if (is_text) {
		snprintf(text, sizeof(text), "%s %.400s %u, %llu bytes, %.1f ms, from %s (%s)",
			 http_method(rq), path ? path : "", status, (unsigned long long)bytes,
			 (double)us / 1000, http_peer(rq), http_id(rq));
		write_text(level, text);
		return;
	}
	begin_json(&j, level, "request");
	json_out_str(&j, "request", http_id(rq));
	json_out_str(&j, "peer", http_peer(rq));
	json_out_str(&j, "method", http_method(rq));
	json_out_str(&j, "path", path ? path : "");
	json_out_u64(&j, "status", status);
	json_out_u64(&j, "bytes", bytes);
	json_out_u64(&j, "us", us);
	end_json(&j);
}
